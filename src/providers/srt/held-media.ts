/** Largest number of held bytes: per publisher, and in total. */
export interface HeldLimits {
  readonly each: number;
  readonly all: number;
}

/** Receiver of the media once the publisher is admitted. */
export interface HeldSink {
  data(bytes: Buffer): void;
  /** Reports the number of messages that are missing at this place. */
  lost(messages: number): void;
}

/** Memory overhead of a piece. */
const PIECE_BYTES = 256;

/**
 * Media of publishers that are not admitted yet. When one exceeds its limit, its held media is dropped, and its stream begins
 * later. When all together exceed the total, the same happens to the publisher with the most held media.
 */
export class HeldMedia {
  readonly #limits: HeldLimits;
  readonly #queues = new Set<HeldQueue>();
  #bytes = 0;

  constructor(limits: HeldLimits) {
    this.#limits = limits;
  }

  /** In bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Opens the queue of one publisher, which closes it. */
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
  readonly onChange: (bytes: number) => void;
  readonly onClose: () => void;
}

/** Media of one publisher in order of arrival. */
export class HeldQueue implements HeldSink {
  readonly #options: QueueOptions;
  /** A number stands for missing messages. */
  #pieces: (Buffer | number)[] = [];
  #bytes = 0;
  #dropped = false;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#bytes;
  }

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

  drop(): void {
    this.#dropped = true;
    this.#clear();
  }

  /** Passes everything to a sink, and closes the queue. */
  release(sink: HeldSink): void {
    const pieces = this.#pieces;
    this.close();
    for (const piece of pieces) {
      if (typeof piece === 'number') sink.lost(piece);
      else sink.data(piece);
    }
  }

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
