import type { Cluster, NodeRow } from '#cluster';
import { isGuarded } from '../../../config/enables.ts';
import { sessionName } from '../../../core/session.ts';
import type { Application } from '../../../core/application.ts';
import type { Logger } from '../../../log/log.ts';
import { KilnError } from '../../../errors.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import type { Viewer } from '../answer/played-stream.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { claimsOf, type SessionTerms, type SessionTokens } from '../answer/token.ts';
import { RemotePlayers } from './remote-players.ts';
import { callsOf, type Report, type Verdict } from './wire.ts';

const TIMEOUT_MS = 2000;

export interface HomeNodesOptions {
  readonly form: HlsForm;
  readonly cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly calls: PeerCalls;
  readonly application: Application;
  readonly name: string;
  readonly tokens: SessionTokens;
  readonly log: Logger;
}

/** Creates the home nodes of a stream. @param name as in viewers' requests */
export type CreateHomeNodes = (application: Application, name: string) => HomeNodes;

/** Node that counts a player, neither this one nor the owner of the stream. */
export interface HomeNode {
  readonly node: NodeRow;
  /** Id of the session in the token, which is not verified yet. */
  readonly session: string;
}

interface Home {
  readonly players: RemotePlayers;
  /** The last report failed: requests do not wait for the next one. */
  isAway: boolean;
}

/** Reports players to their homes: other nodes that admitted and count them, wherever a balancer sends their requests. */
export class HomeNodes {
  readonly #options: HomeNodesOptions;
  readonly #homes = new Map<string, Home>();

  constructor(options: HomeNodesOptions) {
    this.#options = options;
  }

  /**
   * Home for the token of a new player; undefined if the owner of the stream counts it: players with openings or a session name,
   * which must be unique, all players under a connection limit, which holds for all nodes together, and all while nodes have
   * different versions, which may reject tokens that they cannot read. A node alone need not be named.
   * @param query of the player's URL
   */
  forNew(query: URLSearchParams, { openings }: SessionTerms): string | undefined {
    if (this.#isLimited || openings.length > 0 || sessionName(query) !== undefined) return undefined;
    const { cluster } = this.#options;
    return liveNodes(cluster).length > 1 && areAlike(cluster) ? cluster.self.id : undefined;
  }

  /** Terms of a token that all nodes can read. */
  readable(terms: SessionTerms): SessionTerms {
    return readable(terms, this.#options.cluster);
  }

  /** Finds the node that counts the player of a token. */
  of(token: string): 'self' | 'owner' | HomeNode {
    const claims = claimsOf(token);
    if (claims?.home === undefined || this.#isLimited) return 'owner';
    if (claims.home === this.#options.cluster.self.id) return 'self';
    const node = this.#find(claims.home);
    return node === undefined ? 'owner' : { node, session: claims.id };
  }

  /** Tests whether another node counts the players whose tokens name it. @param id of that node */
  isElsewhere(id: string): boolean {
    return id !== this.#options.cluster.self.id && !this.#isLimited && this.#find(id) !== undefined;
  }

  /** Finds the player of a token of another node. @throws as RemotePlayers.admit */
  admit({ node: { id } }: HomeNode, token: string): Viewer | undefined | Promise<Viewer | undefined> {
    let home = this.#homes.get(id);
    if (home === undefined) this.#homes.set(id, (home = this.#open(id)));
    return home.players.admit(token);
  }

  /** @param now by the monotonic clock */
  tick(now: number): void {
    for (const [id, { players }] of this.#homes) {
      players.tick(now);
      // the owner counts the players of a lost node from their next request on
      if (players.isEmpty || this.#find(id) === undefined) this.#homes.delete(id);
    }
  }

  /** A limit may have been set after a token was issued. */
  get #isLimited(): boolean {
    const { form, application } = this.#options;
    return application.config.publishers.maxConnection > 0 || (form.config(application)?.maxConnection ?? 0) > 0;
  }

  #find(id: string): NodeRow | undefined {
    return this.#options.cluster.nodes().find((node) => node.id === id && node.state !== 'lost');
  }

  #open(id: string): Home {
    const { form, application, tokens } = this.#options;
    const guarded = isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind });
    // the owner counts players under a limit
    const maxConnection = 0;
    const report = (sent: Report): Promise<readonly Verdict[] | undefined> => this.#report(id, sent);
    const isAway = (): boolean => this.#homes.get(id)?.isAway === true;
    return { players: new RemotePlayers({ tokens, guarded, maxConnection, isAway, report }), isAway: false };
  }

  /** Sends a report. After a failure it goes to the node that counts the players next: the owner if their home is lost. */
  async #report(id: string, report: Report): Promise<readonly Verdict[] | undefined> {
    const { form, cluster, calls, application, name, log } = this.#options;
    const home = this.#homes.get(id);
    const node = cluster.nodes().find((row) => row.id === id);
    const names = { vhost: application.vhost.name, app: application.name, stream: name };
    try {
      if (node === undefined) return undefined;
      const { players } = await calls.call(node, callsOf(form).visits, { ...names, report }, TIMEOUT_MS);
      if (home !== undefined) home.isAway = false;
      return players;
    } catch (error) {
      if (!(error instanceof KilnError))
        log.error({ err: error }, `the players on this node could not be reported to their home, node ${id}`);
      if (home !== undefined) home.isAway = true;
      return undefined;
    }
  }
}

type Nodes = Pick<Cluster, 'self' | 'nodes'>;

function liveNodes(cluster: Nodes): NodeRow[] {
  return cluster.nodes().filter(({ state }) => state !== 'lost');
}

/** Tests whether all nodes have the version of this one. */
function areAlike(cluster: Nodes): boolean {
  const nodes = liveNodes(cluster);
  const version = nodes.find(({ id }) => id === cluster.self.id)?.info.version;
  return nodes.every(({ info }) => info.version === version);
}

/** Terms of a token that all nodes can read: those of other versions may know nothing of revocations. */
export function readable({ marks, ...terms }: SessionTerms, cluster: Nodes): SessionTerms {
  return marks !== undefined && areAlike(cluster) ? { ...terms, marks } : terms;
}
