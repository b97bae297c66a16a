// Computes the graph layout off the main thread.
import { computeLayout, type Step } from "./layout";

self.onmessage = (event: MessageEvent<Step[]>) => {
  const found = computeLayout(event.data);
  const { xs, ys, from, to } = found;
  // Transfer the buffers instead of copying them.
  self.postMessage(found, { transfer: [xs.buffer, ys.buffer, from.buffer, to.buffer] });
};
