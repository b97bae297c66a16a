// The states of one run, asked for and read by a worker.
//
// What must hold: one question at a time, since a worker tells only what changed since its last answer.
import { notifySignedOut, Problem, unreachableProblem } from "../api/client";
import type { Told } from "./state.worker";
import { applied, type Node, type RunState } from "./state-diff";

/** A state, and the last event that was known when it was asked for. */
export interface Asked {
  state: RunState;
  at: number | null;
}

export class States {
  #run: string;
  #last: () => number | null;
  #worker: Worker | null = null;
  #nodes: readonly Node[] = [];
  #asked: Promise<Asked> | null = null;
  #fail: ((problem: Problem) => void) | null = null;

  /** Of a run; `last` is the last event that is known of it. */
  constructor(run: string, last: () => number | null) {
    this.#run = run;
    this.#last = last;
  }

  /** The state as it is now; whoever asks meanwhile gets the same answer. */
  ask(): Promise<Asked> {
    if (this.#asked) return this.#asked;
    const asked = this.#once().finally(() => {
      if (this.#asked === asked) this.#asked = null;
    });
    this.#asked = asked;
    return asked;
  }

  #once(): Promise<Asked> {
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
      worker.onmessage = ({ data: told }: MessageEvent<Told>) => {
        if (told.kind === "part") changed.push(...told.nodes);
        else if (told.kind === "rest") {
          const state = applied(this.#nodes, changed, told.rest);
          this.#nodes = state.node_results;
          resolve({ state, at });
        } else {
          if (told.status === 401) notifySignedOut();
          fail(told.status === 0 ? unreachableProblem() : new Problem(told.status, told.told));
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
    this.#asked = null;
    this.#fail?.(unreachableProblem());
    this.#fail = null;
  }
}
