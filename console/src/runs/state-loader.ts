// The states of one run, loading for and read by a worker.
//
// What must hold: one question at a time, since a worker tells only what changed since its last answer.
import { notifySignedOut, Problem, unreachableProblem } from "../api/client";
import type { WorkerMessage } from "./state.worker";
import { applyDiff, type Node, type RunState } from "./state-diff";

/** A state, and the last event that was known when it was loading for. */
export interface LoadedState {
  state: RunState;
  at: number | null;
}

export class StateLoader {
  #run: string;
  #last: () => number | null;
  #worker: Worker | null = null;
  #nodes: readonly Node[] = [];
  #loading: Promise<LoadedState> | null = null;
  #fail: ((problem: Problem) => void) | null = null;

  /** Of a run; `last` is the last event that is known of it. */
  constructor(run: string, last: () => number | null) {
    this.#run = run;
    this.#last = last;
  }

  /** The state as it is now; whoever asks meanwhile gets the same answer. */
  load(): Promise<LoadedState> {
    if (this.#loading) return this.#loading;
    const loading = this.#loadOnce().finally(() => {
      if (this.#loading === loading) this.#loading = null;
    });
    this.#loading = loading;
    return loading;
  }

  #loadOnce(): Promise<LoadedState> {
    const at = this.#last();
    this.#worker ??= new Worker(new URL("./state.worker.ts", import.meta.url), { type: "module" });
    const worker = this.#worker;
    const changed: [number, Node][] = [];
    return new Promise((resolve, reject) => {
      const fail = (problem: Problem) => {
        // What was told in part is not known to be whole: the next one begins anew.
        if (changed.length > 0) this.close();
        reject(problem);
      };
      this.#fail = reject;
      worker.onerror = () => fail(unreachableProblem());
      worker.onmessage = ({ data: message }: MessageEvent<WorkerMessage>) => {
        if (message.kind === "part") changed.push(...message.nodes);
        else if (message.kind === "rest") {
          const state = applyDiff(this.#nodes, changed, message.rest);
          this.#nodes = state.node_results;
          resolve({ state, at });
        } else {
          if (message.status === 401) notifySignedOut();
          fail(
            message.status === 0
              ? unreachableProblem()
              : new Problem(message.status, message.problem),
          );
        }
      };
      worker.postMessage({ run: this.#run });
    });
  }

  /** Ends the worker. It is started again if somebody asks. */
  close(): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#nodes = [];
    this.#loading = null;
    this.#fail?.(unreachableProblem());
    this.#fail = null;
  }
}
