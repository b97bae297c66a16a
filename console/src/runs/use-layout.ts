// The layout of a graph, computed by a worker.
import { useEffect, useState } from "react";
import type { GraphLayout, Step } from "./layout";

/** Steps with their layout. */
export interface LaidOut<S extends Step> {
  steps: readonly S[];
  layout: GraphLayout;
}

/** The newest finished layout; null before the first. */
export function useLayout<S extends Step>(steps: readonly S[]): LaidOut<S> | null {
  const [found, setFound] = useState<LaidOut<S> | null>(null);
  useEffect(() => {
    const worker = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = (event: MessageEvent<GraphLayout>) => {
      const { took } = event.data;
      performance.measure("layout", { start: performance.now() - took, duration: took });
      setFound({ steps, layout: event.data });
      worker.terminate();
    };
    worker.postMessage(
      steps.map(({ node_id, wave, depends_on }) => ({ node_id, wave, depends_on })),
    );
    return () => worker.terminate();
  }, [steps]);
  return found;
}
