import type { Writable } from 'node:stream';

/** Size of a frame's two lengths. */
const LENGTHS = 8;
const NOTHING: Buffer = Buffer.alloc(0);

export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/**
 * Writes one frame on a byte stream to another node: the lengths of its JSON and of its bytes, 32 bits each, then both. The
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

/** Splits a byte stream into frames, however it arrives. The limits bound the memory for an incomplete frame. */
export class FrameReader {
  readonly #limits: { readonly head: number; readonly body: number };
  readonly #onFrame: (head: Buffer, body: Buffer) => void;
  readonly #lengths = Buffer.alloc(LENGTHS);
  /** Buffer of the present part (lengths, head or body), and its filled bytes. */
  #target: Buffer = this.#lengths;
  #filled = 0;
  #head: Buffer = NOTHING;

  /** @param limits in bytes @param onFrame called with each frame in buffers of its own */
  constructor(limits: { readonly head: number; readonly body: number }, onFrame: (head: Buffer, body: Buffer) => void) {
    this.#limits = limits;
    this.#onFrame = onFrame;
  }

  /** @throws FrameError; errors of `onFrame` */
  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      const taken = bytes.copy(this.#target, this.#filled, at);
      at += taken;
      this.#filled += taken;
      while (this.#filled === this.#target.length && this.#next());
    }
  }

  /** Handles a complete part. @returns whether the next part may be complete already, because it is empty */
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
