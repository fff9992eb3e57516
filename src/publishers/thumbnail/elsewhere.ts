import { joinKey, splitKey, type Cluster, type PeerRequest, type PeerResponse } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError } from '../../errors.ts';
import { tryNode } from '../../origins/ask-node.ts';
import { peerRequest } from '../../origins/other-nodes.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';
import type { StreamDirectory } from '../../origins/stream-directory.ts';
import { newestPicture, type PicturesOf } from './newest-picture.ts';

const PREFIX = '/thumbnail/';
const TIMEOUT_MS = 5000;

export interface PicturesElsewhereOptions {
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'forward'>;
  readonly directory: StreamDirectory;
  readonly calls: PeerCalls;
}

/** Pictures of streams that another node has, fetched from there, and handed to other nodes. */
export class PicturesElsewhere {
  readonly #options: PicturesElsewhereOptions;

  /** @param pictures of this node */
  constructor(options: PicturesElsewhereOptions, pictures: PicturesOf) {
    this.#options = options;
    options.calls.add(PREFIX, async (request) => this.#answer(request, pictures));
  }

  /** What the node answers that has an output stream; undefined when none has, or it cannot be reached. */
  async ask(application: Application, stream: string, extension: string): Promise<PeerResponse | undefined> {
    const { cluster, directory } = this.#options;
    const location = await directory.locate(application, stream);
    if (location === undefined) return undefined;
    const path = `${PREFIX}${joinKey(application.vhost.name, application.name, stream, extension)}`;
    return tryNode(cluster, location.owner, peerRequest('GET', path), TIMEOUT_MS);
  }

  #answer({ path }: PeerRequest, pictures: PicturesOf): PeerResponse {
    const [vhost = '', app = '', stream = '', extension = ''] = splitKey(path.slice(PREFIX.length));
    try {
      const application = this.#options.registry.vhost(vhost).application(app);
      const { output, type, picture } = newestPicture(pictures, application, stream, extension);
      output.counters.sent(picture.length);
      return { status: 200, headers: { 'content-type': type }, body: picture };
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      return { status: error.status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: Buffer.from(error.message) };
    }
  }
}
