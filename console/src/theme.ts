// Light or dark: as the system says, until somebody says otherwise.
import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark";

const KEY = "sluice.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

const listeners = new Set<() => void>();

/** What somebody chose; null is what the system says. */
export function chosen(): Theme | null {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : null;
}

/** What is shown now. */
export const theme = (): Theme => chosen() ?? (dark.matches ? "dark" : "light");

function apply(): void {
  document.documentElement.dataset.theme = theme();
  for (const listener of listeners) listener();
}

/** Shows the page in its theme, also when the system changes. */
export function applyTheme(): void {
  apply();
  dark.onchange = apply;
}

/** From now on this one; null is what the system says. */
export function chooseTheme(next: Theme | null): void {
  if (next === null) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
  apply();
}

/** The other one, from now on. */
export const switchTheme = (): void => chooseTheme(theme() === "dark" ? "light" : "dark");

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** What is shown, and what was chosen. */
export function useTheme(): { shown: Theme; chosen: Theme | null } {
  const shown = useSyncExternalStore(subscribe, theme);
  const own = useSyncExternalStore(subscribe, chosen);
  return { shown, chosen: own };
}
