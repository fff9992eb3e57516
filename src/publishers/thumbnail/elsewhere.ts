import Type, { type Static } from 'typebox';
import { joinKey } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError } from '../../errors.ts';
import { definePeerCall, STREAM_FIELDS, type WithBytes } from '../../peers/peer-call.ts';
import type { PeerCalls } from '../../peers/peer-calls.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import { formatOf, newestPicture, type PicturesOf } from './newest-picture.ts';

const Picture = Type.Object({ type: Type.String() });
/** The newest picture of an output stream, and its media type. */
const PICTURE = definePeerCall(
  'thumbnail/picture',
  Type.Object({ ...STREAM_FIELDS, extension: Type.String() }),
  Picture,
);
const TIMEOUT_MS = 2000;
/** How long a picture is good for whoever asks next. */
const FRESH_MS = 500;
/** With more than this nothing is kept: who asks at the same time shares a call all the same. */
const MAX_KEPT = 500;

export interface PicturesElsewhereOptions {
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  readonly calls: PeerCalls;
}

/**
 * Pictures of streams that another node has, fetched from there, once for all who ask at about the same time, and handed
 * to other nodes. Who gets one is counted where that is.
 */
export class PicturesElsewhere {
  readonly #options: PicturesElsewhereOptions;
  /** By node, stream and format. */
  readonly #asked = new Map<string, Promise<WithBytes<Static<typeof Picture>> | undefined>>();

  /** @param pictures of this node */
  constructor(options: PicturesElsewhereOptions, pictures: PicturesOf) {
    this.#options = options;
    options.calls.answerBytes(PICTURE, ({ vhost, app, stream, extension }) => {
      const application = options.registry.vhost(vhost).application(app);
      const { type, picture } = newestPicture(pictures, application, stream, extension);
      return { answer: { type }, bytes: picture };
    });
  }

  /**
   * What the node answers that has an output stream; undefined when none has, or it cannot be reached.
   * @throws what newestPicture does, here or there
   */
  async ask(application: Application, stream: string, extension: string) {
    const location = await this.#options.directory.locate(application, stream);
    if (location === undefined) return undefined;
    formatOf(extension);
    const { owner } = location;
    const request = { vhost: application.vhost.name, app: application.name, stream, extension };
    const key = joinKey(owner.id, owner.incarnation, ...Object.values(request));
    const known = this.#asked.get(key);
    if (known !== undefined) return known;
    const answer = this.#options.calls.callForBytes(owner, PICTURE, request, TIMEOUT_MS).catch(unlessAway);
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

/** @throws what the other node did */
function unlessAway(error: unknown): undefined {
  const away = ['ownerUnreachable', 'ownerSilent', 'callUnknown'];
  if (!(error instanceof KilnError) || !away.includes(error.code)) throw error;
}
