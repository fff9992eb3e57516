import type { Application } from '../../../core/application.ts';
import { CachedPackets } from '../../../core/cached-packets.ts';
import { delayed } from '../../../core/delayed-stream.ts';
import { GopCache } from '../../../core/gop-cache.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import { unlessAborted } from '../../../lib/unless-aborted.ts';

/** Limits of the media that is kept of a stream: more seconds than it waits. */
const LIMITS = { bytes: 8 * 1024 * 1024, seconds: 10 };

interface Opening {
  readonly stop: AbortController;
  /** Never rejects. */
  readonly over: Promise<void>;
}

export interface OpeningSteps<T> {
  /** Milliseconds by which the stream is packaged later. */
  readonly delayMs: number;
  /** Reads what is needed, in bounded time. The signal aborts when it is needed no more. Never rejects. */
  readonly read: (signal: AbortSignal) => Promise<T>;
  /** Begins the stream, in the turn in which it is called, after which what came first is kept no longer. */
  readonly begin: (result: T, first: Pick<CachedPackets, 'replay'>) => void;
  /** Called with what `begin` throws. */
  readonly onFault: (error: unknown) => void;
}

/** Streams that cannot be packaged before something was read for them. */
export class Openings {
  readonly #open = new Map<Application, Map<string, Opening>>();

  /** Resolves when a stream has begun, or will not; undefined for one that is not waited for. Never rejects. */
  of(application: Application, name: string): Promise<void> | undefined {
    return this.#open.get(application)?.get(name)?.over;
  }

  /** Lets a stream begin when something was read, with what came until then, from its first key frame on; unless it closes before. */
  open<T>(output: OutputStream, application: Application, steps: OpeningSteps<T>): void {
    const stop = new AbortController();
    const over = this.#wait(output, steps, stop).finally(() => {
      const streams = this.#open.get(application);
      if (streams?.get(output.name)?.stop === stop) streams.delete(output.name);
      if (streams?.size === 0) this.#open.delete(application);
    });
    const streams = this.#open.get(application) ?? new Map<string, Opening>();
    this.#open.set(application, streams.set(output.name, { stop, over }));
  }

  /** The stream is not to begin any more, since another one has its name. */
  forget(application: Application, name: string): void {
    this.#open.get(application)?.get(name)?.stop.abort();
  }

  /** None begins any more. Idempotent. */
  close(): void {
    for (const streams of this.#open.values()) for (const { stop } of streams.values()) stop.abort();
  }

  async #wait<T>(output: OutputStream, steps: OpeningSteps<T>, stop: AbortController): Promise<void> {
    const { delayMs, read, begin, onFault } = steps;
    const onClose = (): void => stop.abort();
    output.once('close', onClose);
    const first = new CachedPackets(delayed(output, delayMs), () => new GopCache(LIMITS, () => -Infinity));
    try {
      const done = await unlessAborted(
        read(stop.signal).then((result) => ({ result })),
        stop.signal,
      );
      if (done !== undefined && !stop.signal.aborted) begin(done.result, first);
    } catch (error) {
      onFault(error);
    } finally {
      first.close();
      output.off('close', onClose);
    }
  }
}
