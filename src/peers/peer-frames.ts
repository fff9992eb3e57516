import type { Writable } from 'node:stream';

/** Bytes of a frame's own two lengths. */
const LENGTHS = 8;
const NOTHING: Buffer = Buffer.alloc(0);

/** A frame breaks the limits of its reader. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/**
 * Writes one frame on a stream of bytes to another node: the lengths of its JSON and of its bytes, 32 bits each, then both. The
 * bytes are not copied.
 */
export function writeFrame(stream: Writable, head: object, body: readonly Buffer[] = []): void {
  const text = Buffer.from(JSON.stringify(head));
  const lengths = Buffer.allocUnsafe(LENGTHS);
  lengths.writeUInt32BE(text.length, 0);
  lengths.writeUInt32BE(
    body.reduce((sum, { length }) => sum + length, 0),
    4,
  );
  stream.cork();
  stream.write(lengths);
  stream.write(text);
  for (const bytes of body) stream.write(bytes);
  stream.uncork();
}

/** Takes the frames of a stream of bytes apart, however it is cut. What is not complete is held within the limits. */
export class FrameReader {
  readonly #limits: { readonly head: number; readonly body: number };
  readonly #onFrame: (head: Buffer, body: Buffer) => void;
  readonly #lengths = Buffer.alloc(LENGTHS);
  /** What is being read, and how much of it is there. */
  #target: Buffer = this.#lengths;
  #filled = 0;
  #head: Buffer = NOTHING;

  /** @param limits in bytes @param onFrame called with each whole frame, whose bytes are its own */
  constructor(limits: { readonly head: number; readonly body: number }, onFrame: (head: Buffer, body: Buffer) => void) {
    this.#limits = limits;
    this.#onFrame = onFrame;
  }

  /** @throws FrameError; what `onFrame` throws */
  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      const taken = bytes.copy(this.#target, this.#filled, at);
      at += taken;
      this.#filled += taken;
      while (this.#filled === this.#target.length && this.#next());
    }
  }

  /** What was being read is whole. @returns whether what comes next may be, too, since it is empty */
  #next(): boolean {
    const whole = this.#target;
    this.#filled = 0;
    if (whole === this.#lengths) {
      const [head, body] = [whole.readUInt32BE(0), whole.readUInt32BE(4)];
      if (head > this.#limits.head || body > this.#limits.body)
        throw new FrameError(`a frame announces ${head} and ${body} bytes`);
      this.#target = this.#head = Buffer.allocUnsafeSlow(head);
      return true;
    }
    if (whole === this.#head) {
      this.#target = Buffer.allocUnsafeSlow(this.#lengths.readUInt32BE(4));
      return true;
    }
    this.#target = this.#lengths;
    this.#onFrame(this.#head, whole);
    return false;
  }
}
