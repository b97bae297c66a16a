// Light or dark theme: the system's, until the user chooses one.
import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark";

const KEY = "sluice.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

const listeners = new Set<() => void>();

/** The user's choice; null follows the system. */
export function chosen(): Theme | null {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : null;
}

/** The theme in effect. */
export const theme = (): Theme => chosen() ?? (dark.matches ? "dark" : "light");

function apply(): void {
  document.documentElement.dataset.theme = theme();
  for (const listener of listeners) listener();
}

/** Applies the theme, and again whenever the system's changes. */
export function applyTheme(): void {
  apply();
  dark.onchange = apply;
}

/** Stores the user's choice; null follows the system. */
export function chooseTheme(next: Theme | null): void {
  if (next === null) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, next);
  apply();
}

export const switchTheme = (): void => chooseTheme(theme() === "dark" ? "light" : "dark");

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** The theme in effect, and the user's choice. */
export function useTheme(): { shown: Theme; chosen: Theme | null } {
  const shown = useSyncExternalStore(subscribe, theme);
  const own = useSyncExternalStore(subscribe, chosen);
  return { shown, chosen: own };
}
