import type { Cluster, NodeRow } from '#cluster';
import { isGuarded } from '../../../config/enables.ts';
import { sessionName } from '../../../core/session.ts';
import type { Application } from '../../../core/application.ts';
import type { Logger } from '../../../log/log.ts';
import { KilnError } from '../../../errors.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import type { Viewer } from '../answer/answer.ts';
import type { HlsForm } from '../package/form.ts';
import { claimsOf, type SessionTerms, type SessionTokens } from '../answer/token.ts';
import { RemotePlayers } from './remote-players.ts';
import { callsOf, type Report, type Verdict } from './wire.ts';

const TIMEOUT_MS = 2000;

/** The other nodes that count players of one stream. */
export interface HomesOptions {
  readonly form: HlsForm;
  readonly cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly calls: PeerCalls;
  readonly application: Application;
  /** Of the output stream. */
  readonly name: string;
  readonly tokens: SessionTokens;
  readonly log: Logger;
}

/** The same of a stream, by the name that viewers ask for. */
export type OpenHomes = (application: Application, name: string) => Homes;

/** Who counts a player: another node than this one, and than the owner of the stream. */
export interface Elsewhere {
  readonly node: NodeRow;
  /** Of the session, as the token says that is not verified yet. */
  readonly session: string;
}

interface Home {
  readonly players: RemotePlayers;
  /** The last report came to nothing: nobody is held for the next one. */
  isAway: boolean;
}

/**
 * Players who came to this node with the token of another one that is not the owner of the stream: each is counted by the
 * node that let it in, wherever a balancer sends its requests.
 */
export class Homes {
  readonly #options: HomesOptions;
  readonly #homes = new Map<string, Home>();

  constructor(options: HomesOptions) {
    this.#options = options;
  }

  /**
   * What the token of a new player names, whom this node counts then; undefined where the owner of the stream does: those that
   * somebody is to hear the end of, or whose name must be there once, and all where there is a limit for all nodes together. So
   * it does while there are nodes of another version, which may refuse what they cannot read. A node alone need not be named.
   * @param query of the player's URL
   */
  forNew(query: URLSearchParams, { openings }: SessionTerms): string | undefined {
    if (this.#isLimited || openings.length > 0 || sessionName(query) !== undefined) return undefined;
    const { cluster } = this.#options;
    const nodes = cluster.nodes().filter(({ state }) => state !== 'lost');
    const own = nodes.find(({ id }) => id === cluster.self.id);
    const isAlike = nodes.every(({ info }) => info.version === own?.info.version);
    return nodes.length > 1 && isAlike ? cluster.self.id : undefined;
  }

  /** Who counts the player of a token. */
  of(token: string): 'self' | 'owner' | Elsewhere {
    const claims = claimsOf(token);
    if (claims?.home === undefined || this.#isLimited) return 'owner';
    if (claims.home === this.#options.cluster.self.id) return 'self';
    const node = this.#find(claims.home);
    return node === undefined ? 'owner' : { node, session: claims.id };
  }

  /** Whether another node counts the players whose tokens name it. @param id of that node */
  isElsewhere(id: string): boolean {
    return id !== this.#options.cluster.self.id && !this.#isLimited && this.#find(id) !== undefined;
  }

  /** The player of a token of another node. @throws as RemotePlayers.admit */
  admit({ node: { id } }: Elsewhere, token: string): Viewer | undefined | Promise<Viewer | undefined> {
    let home = this.#homes.get(id);
    if (home === undefined) this.#homes.set(id, (home = this.#open(id)));
    return home.players.admit(token);
  }

  /** @param now by the monotonic clock */
  tick(now: number): void {
    for (const [id, { players }] of this.#homes) {
      players.tick(now);
      // players of a node that has gone are the owner's from their next request on
      if (players.isEmpty || this.#find(id) === undefined) this.#homes.delete(id);
    }
  }

  /** Limits may have been set after a token was issued. */
  get #isLimited(): boolean {
    const { form, application } = this.#options;
    return application.config.publishers.maxConnection > 0 || (form.config(application)?.maxConnection ?? 0) > 0;
  }

  /** A node that lives. */
  #find(id: string): NodeRow | undefined {
    return this.#options.cluster.nodes().find((node) => node.id === id && node.state !== 'lost');
  }

  #open(id: string): Home {
    const { form, application, tokens } = this.#options;
    const guarded = isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind });
    // who is limited is counted by the owner
    const maxConnection = 0;
    const report = (told: Report): Promise<readonly Verdict[] | undefined> => this.#report(id, told);
    const isAway = (): boolean => this.#homes.get(id)?.isAway === true;
    return { players: new RemotePlayers({ tokens, guarded, maxConnection, isAway, report }), isAway: false };
  }

  /** What is not told now, is told to who counts them then: the owner when that node has gone. */
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
      if (!(error instanceof KilnError)) log.error({ err: error }, `node ${id} could not be told of its players here`);
      if (home !== undefined) home.isAway = true;
      return undefined;
    }
  }
}
