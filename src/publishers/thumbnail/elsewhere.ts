import { joinKey, splitKey, type PeerRequest, type PeerResponse } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError } from '../../errors.ts';
import { peerRequest, type OtherNodes } from '../../origins/other-nodes.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';
import type { StreamDirectory } from '../../origins/stream-directory.ts';
import { formatOf, newestPicture, type PicturesOf } from './newest-picture.ts';

const PREFIX = '/thumbnail/';
/** How long a picture is good for whoever asks next. */
const FRESH_MS = 500;
/** With more than this nothing is kept: who asks at the same time shares a call all the same. */
const MAX_KEPT = 500;

export interface PicturesElsewhereOptions {
  readonly registry: Registry;
  readonly others: OtherNodes;
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
  readonly #asked = new Map<string, Promise<PeerResponse | undefined>>();

  /** @param pictures of this node */
  constructor(options: PicturesElsewhereOptions, pictures: PicturesOf) {
    this.#options = options;
    options.calls.add(PREFIX, async (request) => this.#answer(request, pictures));
  }

  /**
   * What the node answers that has an output stream; undefined when none has, or it cannot be reached.
   * @throws thumbnailExtension
   */
  async ask(application: Application, stream: string, extension: string): Promise<PeerResponse | undefined> {
    const location = await this.#options.directory.locate(application, stream);
    if (location === undefined) return undefined;
    formatOf(extension);
    const { owner } = location;
    const path = joinKey(application.vhost.name, application.name, stream, extension);
    const key = joinKey(owner.id, owner.incarnation, path);
    const known = this.#asked.get(key);
    if (known !== undefined) return known;
    const answer = this.#options.others.askOne(owner, peerRequest('GET', PREFIX + path));
    this.#asked.set(key, answer);
    const forget = (): void => void this.#asked.delete(key);
    const keep = (): void => {
      if (this.#asked.size > MAX_KEPT) forget();
      else setTimeout(forget, FRESH_MS).unref();
    };
    answer.then(keep, forget);
    return answer;
  }

  #answer({ path }: PeerRequest, pictures: PicturesOf): PeerResponse {
    const [vhost = '', app = '', stream = '', extension = ''] = splitKey(path.slice(PREFIX.length));
    try {
      const application = this.#options.registry.vhost(vhost).application(app);
      const { type, picture } = newestPicture(pictures, application, stream, extension);
      return { status: 200, headers: { 'content-type': type }, body: picture };
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      return {
        status: error.status,
        headers: { 'content-type': 'text/plain; charset=utf-8' },
        body: Buffer.from(error.message),
      };
    }
  }
}
