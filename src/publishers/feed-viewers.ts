import type { OutputStream } from '../core/output-stream.ts';
import type { QueueKind } from '../core/queue.ts';
import type { Consumer, Reader, ReaderLimits } from '../core/reader.ts';
import type { Stream } from '../core/stream.ts';

/** Limits of a slow viewer's queue; above them it resumes at the next key frame. */
const LIMITS: ReaderLimits = { bytes: 8 * 1024 * 1024, seconds: 3 };

export interface FeedViewersOptions {
  readonly output: OutputStream;
  /** The output in the form that viewers get. */
  readonly feed: Stream;
  readonly kind: QueueKind;
  /** The last viewer has left. */
  readonly onLast: () => void;
}

/** Viewers of an output stream that all get the same bytes. */
export class FeedViewers {
  readonly #options: FeedViewersOptions;
  #count = 0;

  constructor(options: FeedViewersOptions) {
    this.#options = options;
  }

  /** Keeps the feed, also for a viewer that is still to come. @returns ends that, to be called once */
  hold(): () => void {
    this.#count++;
    this.#options.output.wantKey();
    return () => {
      if (--this.#count === 0) this.#options.onLast();
    };
  }

  /** Adds a viewer. The caller calls `detach` once, when the viewer leaves. */
  attach(viewer: Consumer): { reader: Reader; detach: () => void } {
    const { output, feed, kind } = this.#options;
    const release = this.hold();
    const queue = output.queue(kind, { seconds: LIMITS.seconds / 2 });
    const reader = feed.read(viewer, LIMITS, queue);
    const detach = (): void => {
      reader.close();
      release();
    };
    return { reader, detach };
  }
}
