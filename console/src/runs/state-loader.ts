// Loads the state of one run in a worker.
//
// INVARIANT: one load at a time, because the worker sends only the difference to its last result.
import { notifySignedOut, Problem, unreachableProblem } from "../api/client";
import type { WorkerMessage } from "./state.worker";
import { applyDiff, type Node, type RunState } from "./state-diff";

/** A state, and the last event known when it was requested. */
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

  /** `last` returns the id of the last known event. */
  constructor(run: string, last: () => number | null) {
    this.#run = run;
    this.#last = last;
  }

  /** Loads the current state. Concurrent callers share one load. */
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
        // A partial diff cannot be completed: start over with a new worker.
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

  /** Terminates the worker. The next load starts a new one. */
  close(): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#nodes = [];
    this.#loading = null;
    this.#fail?.(unreachableProblem());
    this.#fail = null;
  }
}
