// The texts of a set of policies, while they are worked on.
import type { Schemas } from "../api/client";

/** Names and texts. */
export type Files = Readonly<Record<string, string>>;

/** What a policy file may be called. */
export const FILE_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** The texts of a set. */
export function fileTexts(set: Pick<Schemas["SetShown"], "files">): Files {
  return Object.fromEntries(set.files.map((file) => [file.name, file.text]));
}

/** The names of files that one has and the other has not, or has otherwise. */
export function changedFiles(before: Files, after: Files): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]).sort();
}
