import { joinKey, splitKey, type PeerRequest, type PeerResponse } from '#cluster';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { peerRequest, type OtherNodes } from '../../origins/other-nodes.ts';
import type { PeerCalls } from '../../origins/peer-calls.ts';

const PREFIX = '/viewers/';
const NONE = 204;

export interface ViewersOptions {
  readonly registry: Registry;
  readonly others: OtherNodes;
  readonly calls: PeerCalls;
}

/** Finds the viewers that a stream has on other nodes. */
export class Viewers {
  readonly #options: ViewersOptions;

  constructor(options: ViewersOptions) {
    this.#options = options;
    options.calls.add(PREFIX, async (request) => this.#answer(request));
  }

  /** Whether a stream of this node is watched on another. One that does not answer may have viewers. */
  async areElsewhere({ vhost, name }: Application, stream: string): Promise<boolean> {
    const replies = await this.#options.others.ask(peerRequest('GET', `${PREFIX}${joinKey(vhost.name, name, stream)}`));
    return replies.some(({ response }) => response?.status !== NONE);
  }

  #answer({ path }: PeerRequest): PeerResponse {
    const [vhost = '', app = '', stream = ''] = splitKey(path.slice(PREFIX.length));
    const relays = this.#options.registry.vhosts.get(vhost)?.applications.get(app)?.relays.values() ?? [];
    const isWatched = [...relays].some(({ input }) => input.name === stream && input.counters.totalConnections > 0);
    return { status: isWatched ? 200 : NONE, headers: {}, body: Buffer.alloc(0) };
  }
}
