import { kilnError } from '../../../errors.ts';
import type { Media } from '../answer.ts';
import type { MediaCache } from './cache.ts';
import { AwayError, type OwnerLink } from './link.ts';
import { HELD_MS } from './wire.ts';

/** Files that are fetched at once; a player asks for a few, and the same as the others. */
const MAX_FETCHED = 256;

/** Parts, segments and initializations of a stream that another node has: each is fetched once for all who ask here. */
export class RemoteMedia {
  readonly #link: OwnerLink;
  readonly #cache: MediaCache;
  readonly #fetching = new Map<string, Promise<Media>>();
  /** Changes when what is fetched is not to be kept any more. */
  #epoch = 0;

  constructor(link: OwnerLink, cache: MediaCache) {
    this.#link = link;
    this.#cache = cache;
  }

  /** What is here already. */
  get(file: string): Media | undefined {
    return this.#cache.get(this, file);
  }

  /** @throws fileNotFound, playlistOverdue, tooManyWaiting, streamInterrupted */
  fetch(file: string): Promise<Media> {
    const under = this.#fetching.get(file);
    if (under !== undefined) return under;
    if (this.#fetching.size >= MAX_FETCHED) throw kilnError('tooManyWaiting');
    const fetching = this.#fetch(file).finally(() => {
      if (this.#fetching.get(file) === fetching) this.#fetching.delete(file);
    });
    this.#fetching.set(file, fetching);
    return fetching;
  }

  /** Names mean other files from now on, or nothing. */
  clear(): void {
    this.#epoch++;
    this.#fetching.clear();
    this.#cache.drop(this);
  }

  async #fetch(file: string): Promise<Media> {
    const epoch = this.#epoch;
    const ask = () => this.#link.fetch(this.#link.calls.media, { file }, HELD_MS);
    try {
      // what an owner of the past does not answer, the next one may
      const { answer, bytes } = (await this.#link.unlessMoved(ask())) ?? (await ask());
      const media: Media = { ...answer, body: [bytes] };
      if (epoch === this.#epoch) this.#cache.put(this, file, media);
      return media;
    } catch (error) {
      throw error instanceof AwayError ? kilnError('streamInterrupted') : error;
    }
  }
}
