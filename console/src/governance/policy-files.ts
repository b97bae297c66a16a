// The files of a policy set while a user edits them.
import type { Schemas } from "../api/client";

/** Texts by file name. */
export type Files = Readonly<Record<string, string>>;

/** Valid names of policy files. */
export const FILE_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

export function fileTexts(set: Pick<Schemas["SetShown"], "files">): Files {
  return Object.fromEntries(set.files.map((file) => [file.name, file.text]));
}

/** Names of files that were added, removed or changed. */
export function changedFiles(before: Files, after: Files): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]).sort();
}
