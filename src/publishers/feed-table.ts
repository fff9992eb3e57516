import type { OutputStream } from '../core/output-stream.ts';

/** Feeds that viewers share, by output stream and what they get of it. */
export class FeedTable<Feed> {
  readonly #feeds = new Map<OutputStream, Map<string, Feed>>();

  /**
   * @param key names a feed among those of its output
   * @param make makes a feed that is not there yet; it calls `onEnd` when it closes
   */
  get(output: OutputStream, key: string, make: (onEnd: () => void) => Feed): Feed {
    const feeds = this.#feeds.get(output) ?? new Map<string, Feed>();
    const known = feeds.get(key);
    if (known !== undefined) return known;
    const feed = make(() => {
      feeds.delete(key);
      if (feeds.size === 0) this.#feeds.delete(output);
    });
    this.#feeds.set(output, feeds.set(key, feed));
    return feed;
  }
}
