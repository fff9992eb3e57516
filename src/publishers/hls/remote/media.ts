import { kilnError } from '../../../errors.ts';
import type { Media } from '../answer/played-stream.ts';
import { holdFor } from '../blocking-reload/held-requests.ts';
import { Waiters } from '../blocking-reload/waiters.ts';
import type { MediaCache } from '../answer/media-cache.ts';
import { AwayError, interrupted, type OwnerLink } from './link.ts';
import { HELD_MS } from '../sessions/wire.ts';

/** Time after a request for a part in which players are taken to want parts. */
const PARTS_MS = 10_000;
/** Simultaneous fetches; a player needs a few, mostly the same as others. */
const MAX_FETCHED = 256;

/** Parts, segments and initializations of a stream of another node: each is fetched once for all requests here. */
export class RemoteMedia {
  readonly #link: OwnerLink;
  readonly #cache: MediaCache;
  readonly #fetching = new Map<string, Promise<Media>>();
  /** Changes when running fetches must no longer be cached. */
  #epoch = 0;
  readonly #expects: (file: string) => boolean;
  /** Requests for a part that is to be sent. */
  readonly #sent = new Waiters();
  /** When a part was last requested, by the monotonic clock. */
  #partsAt = -Infinity;

  /** @param expects tests whether a file is the next part, which comes without a call */
  constructor(link: OwnerLink, cache: MediaCache, expects: (file: string) => boolean) {
    this.#link = link;
    this.#cache = cache;
    this.#expects = expects;
  }

  get wantsParts(): boolean {
    return performance.now() - this.#partsAt < PARTS_MS;
  }

  get(file: string): Media | undefined {
    const media = this.#cache.get(this, file);
    if (media?.kind === 'part') this.#partsAt = performance.now();
    return media;
  }

  put(file: string, part: Media): void {
    this.#cache.put(this, file, part);
  }

  /** Wakes requests whose part has come, or will not come. */
  check(): void {
    this.#sent.check();
  }

  /** Fetches a file for a player, who waits while no node answers. @throws as `fetch` */
  fetchHeld(file: string): Promise<Media> {
    return this.#link.whileAway(() => this.fetch(file));
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

  /** Forgets all files: their names mean other files from now on, or nothing. */
  clear(): void {
    this.#epoch++;
    this.#fetching.clear();
    this.#cache.drop(this);
  }

  /** Waits for the announced part; undefined where it is not sent after all. */
  async #whenSent(file: string): Promise<Media | undefined> {
    if (!this.#expects(file)) return undefined;
    this.#partsAt = performance.now();
    const decided = (): boolean => this.#cache.get(this, file) !== undefined || !this.#expects(file);
    await holdFor(HELD_MS)((onLeft) => this.#sent.wait(decided, HELD_MS, onLeft));
    return this.#cache.get(this, file);
  }

  async #fetch(file: string): Promise<Media> {
    const epoch = this.#epoch;
    const sent = await this.#whenSent(file);
    if (sent !== undefined) return sent;
    const ask = () => this.#link.fetch(this.#link.calls.media, { file }, HELD_MS);
    try {
      // the next owner may answer what the former one does not
      const { answer, bytes } = (await this.#link.unlessMoved(ask())) ?? (await ask());
      const media: Media = { ...answer, body: [bytes] };
      if (media.kind === 'part') this.#partsAt = performance.now();
      if (epoch === this.#epoch) this.#cache.put(this, file, media);
      return media;
    } catch (error) {
      throw error instanceof AwayError ? interrupted(error) : error;
    }
  }
}
