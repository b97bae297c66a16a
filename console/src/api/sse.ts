// Parser of server-sent events that arrive in chunks.

export interface Frame {
  id: string | null;
  event: string;
  data: string;
}

/** Longest accepted line. The server's limit for an event is far below this. */
const LINE_MAX = 16 * 1024 * 1024;

/** Collects chunks and returns the frames they complete. */
export class Frames {
  #rest = "";
  #frame: Frame = { id: null, event: "message", data: "" };
  #lines = 0;

  push(piece: string): Frame[] {
    const done: Frame[] = [];
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > LINE_MAX) throw new Error("a line of the stream is too long");
    for (const raw of lines) this.#line(raw.endsWith("\r") ? raw.slice(0, -1) : raw, done);
    return done;
  }

  #line(line: string, done: Frame[]): void {
    if (line === "") {
      if (this.#lines > 0) done.push(this.#frame);
      this.#frame = { id: null, event: "message", data: "" };
      this.#lines = 0;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // A comment: only a sign of life.
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.#frame.id = value;
    else if (field === "event") this.#frame.event = value;
    else if (field === "data") {
      this.#frame.data += this.#lines > 0 ? `\n${value}` : value;
      this.#lines += 1;
    }
  }
}
