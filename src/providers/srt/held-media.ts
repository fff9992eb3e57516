/** Bytes that are held at most: of one publisher, and of all together. */
export interface HeldLimits {
  readonly each: number;
  readonly all: number;
}

/** What takes the media when the publisher is admitted. */
export interface HeldSink {
  data(bytes: Buffer): void;
  /** So many messages are missing here. */
  lost(messages: number): void;
}

/** What a piece costs beside its bytes. */
const PIECE_BYTES = 256;

/**
 * What publishers send before they are admitted. When one sends more than may be held, what is held of it is dropped, and
 * its stream begins later. When all of them together do, that happens to the one of which most is held.
 */
export class HeldMedia {
  readonly #limits: HeldLimits;
  readonly #queues = new Set<HeldQueue>();
  #bytes = 0;

  constructor(limits: HeldLimits) {
    this.#limits = limits;
  }

  /** Memory that is used, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Holds the media of one publisher, which closes it. */
  open(): HeldQueue {
    const queue = new HeldQueue({
      onChange: (bytes) => {
        this.#bytes += bytes;
        if (queue.bytes > this.#limits.each) queue.drop();
        else if (this.#bytes > this.#limits.all) this.#largest().drop();
      },
      onClose: () => this.#queues.delete(queue),
    });
    this.#queues.add(queue);
    return queue;
  }

  #largest(): HeldQueue {
    return [...this.#queues].reduce((largest, queue) => (queue.bytes > largest.bytes ? queue : largest));
  }
}

interface QueueOptions {
  /** Called with the bytes that came, or, as a negative number, went. */
  readonly onChange: (bytes: number) => void;
  readonly onClose: () => void;
}

/** The media of one publisher, in the order in which it came. */
export class HeldQueue implements HeldSink {
  readonly #options: QueueOptions;
  /** A number is that of missing messages. */
  #pieces: (Buffer | number)[] = [];
  #bytes = 0;
  #dropped = false;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether anything was dropped. */
  get dropped(): boolean {
    return this.#dropped;
  }

  /** @param bytes are copied */
  data(bytes: Buffer): void {
    this.#add(Buffer.from(bytes), bytes.length);
  }

  lost(messages: number): void {
    this.#add(messages, 0);
  }

  /** What is held is forgotten. */
  drop(): void {
    this.#dropped = true;
    this.#clear();
  }

  /** Gives everything to a sink, and holds nothing from then on. */
  release(sink: HeldSink): void {
    const pieces = this.#pieces;
    this.close();
    for (const piece of pieces) {
      if (typeof piece === 'number') sink.lost(piece);
      else sink.data(piece);
    }
  }

  /** Idempotent. */
  close(): void {
    this.#clear();
    this.#options.onClose();
  }

  #add(piece: Buffer | number, length: number): void {
    const bytes = length + PIECE_BYTES;
    this.#pieces.push(piece);
    this.#bytes += bytes;
    this.#options.onChange(bytes);
  }

  #clear(): void {
    const bytes = this.#bytes;
    this.#pieces = [];
    this.#bytes = 0;
    this.#options.onChange(-bytes);
  }
}
