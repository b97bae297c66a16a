// Finds places beside the page, which stays quick meanwhile.
import { computeLayout, type Step } from "./layout";

self.onmessage = (event: MessageEvent<Step[]>) => {
  const found = computeLayout(event.data);
  const { xs, ys, from, to } = found;
  // Handed over, not copied.
  self.postMessage(found, { transfer: [xs.buffer, ys.buffer, from.buffer, to.buffer] });
};
