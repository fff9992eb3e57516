import Type, { type Static } from 'typebox';
import { joinKey } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError } from '../../errors.ts';
import { definePeerCall, STREAM_FIELDS, type WithBytes } from '../../peers/peer-call.ts';
import type { PeerCalls } from '../../peers/peer-calls.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import { awaitedThumbnail, formatOf, type ThumbnailsOf } from './newest-thumbnail.ts';

const ThumbnailAnswer = Type.Object({ type: Type.String() });
/** Newest thumbnail of an output stream, with its media type. */
const NEWEST_THUMBNAIL = definePeerCall(
  'thumbnail/picture',
  Type.Object({ ...STREAM_FIELDS, extension: Type.String() }),
  ThumbnailAnswer,
);
const TIMEOUT_MS = 2000;
/** Longest wait for the first thumbnail of a stream, within that time. */
const FIRST_MS = 1500;
/** Time for which an answer is reused for further requests. */
const FRESH_MS = 500;
/** Above so many answers none is kept; simultaneous requests share a call all the same. */
const MAX_KEPT = 500;

export interface RemoteThumbnailsOptions {
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly calls: PeerCalls;
}

/**
 * Fetches thumbnails of streams on other nodes, once for simultaneous requests, and serves this node's to them. The node that
 * the viewer is connected to counts it.
 */
export class RemoteThumbnails {
  readonly #options: RemoteThumbnailsOptions;
  /** By node, stream and format. */
  readonly #asked = new Map<string, Promise<WithBytes<Static<typeof ThumbnailAnswer>> | undefined>>();

  /** @param thumbnails those of this node */
  constructor(options: RemoteThumbnailsOptions, thumbnails: ThumbnailsOf) {
    this.#options = options;
    options.calls.answerBytes(NEWEST_THUMBNAIL, async ({ vhost, app, stream, extension }) => {
      const application = options.registry.vhost(vhost).application(app);
      const { type, image } = await awaitedThumbnail(thumbnails, application, stream, extension, FIRST_MS);
      return { answer: { type }, bytes: image };
    });
  }

  /**
   * Asks the owner of an output stream; undefined when there is none, or it is unreachable.
   * @throws as newestThumbnail, here or there
   */
  async newest(application: Application, stream: string, extension: string) {
    const location = await this.#options.directory.locate(application, stream);
    if (location === undefined) return undefined;
    formatOf(extension);
    const { owner } = location;
    const request = { vhost: application.vhost.name, app: application.name, stream, extension };
    const key = joinKey(owner.id, owner.incarnation, ...Object.values(request));
    const known = this.#asked.get(key);
    if (known !== undefined) return known;
    const answer = this.#options.calls
      .callForBytes(owner, NEWEST_THUMBNAIL, request, TIMEOUT_MS)
      .catch(unlessUnreachable);
    this.#asked.set(key, answer);
    const forget = (): void => void this.#asked.delete(key);
    const keep = (): void => {
      if (this.#asked.size > MAX_KEPT) forget();
      else setTimeout(forget, FRESH_MS).unref();
    };
    answer.then(keep, keep);
    return answer;
  }
}

/** @throws the error of the other node */
function unlessUnreachable(error: unknown): undefined {
  const unreachable = ['ownerUnreachable', 'ownerSilent', 'callUnknown'];
  if (!(error instanceof KilnError) || !unreachable.includes(error.code)) throw error;
}
