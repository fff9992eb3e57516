import type { NodeIdentity } from '#cluster';
import type { Access } from '../../../access/access.ts';
import type { GrantState } from '../../../access/grant.ts';
import { checkPresent } from '../../../access/request.ts';
import { isGuarded } from '../../../config/enables.ts';
import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import { sessionId } from '../../../core/session.ts';
import { KilnError, kilnError } from '../../../errors.ts';
import type { Logger } from '../../../log.ts';
import type { PeerCalls } from '../../../origins/peer-calls.ts';
import { CONTINUED_MS } from '../../../origins/stream-names.ts';
import type { StreamDirectory } from '../../../origins/stream-directory.ts';
import type { FileAnswer, Hold, Master, MasterRequest, PlayedStream, Viewer } from '../answer.ts';
import { handedOn, type Directives } from '../directives.ts';
import type { HlsForm } from '../form.ts';
import { MasterTemplate } from '../master-template.ts';
import { Text } from '../text.ts';
import type { SessionTokens } from '../token.ts';
import type { MediaCache } from './cache.ts';
import { RemoteChunklists } from './chunklists.ts';
import { AwayError, OwnerLink } from './link.ts';
import { RemoteMasters } from './masters.ts';
import { RemoteMedia } from './media.ts';
import { RemotePlayers } from './players.ts';
import type { MasterState, Report, Verdict } from './wire.ts';

/** Files that are fetched at once for one connection: caches in front of players ask for many. */
const MAX_FETCHED_BY_ONE = 64;

/** What a stream of another node is played with. */
export interface RemoteStreamOptions {
  readonly form: HlsForm;
  readonly calls: PeerCalls;
  readonly directory: Pick<StreamDirectory, 'locate' | 'mayMove'>;
  readonly application: Application;
  readonly config: HlsPublisherConfig;
  /** As viewers ask for it. */
  readonly name: string;
  readonly owner: NodeIdentity;
  readonly cache: MediaCache;
  readonly tokens: SessionTokens;
  readonly access: Pick<Access, 'adopt'>;
  readonly log: Logger;
}

/**
 * HLS of an output stream that another node has: each file is fetched once for all players here. While its publisher
 * is away, and while the node that had it does not answer, players get what is known here.
 */
export class RemoteStream implements PlayedStream {
  readonly config: HlsPublisherConfig;
  /** When somebody asked for it last, by the monotonic clock. */
  usedAt = performance.now();
  readonly #options: RemoteStreamOptions;
  readonly #link: OwnerLink;
  readonly #players: RemotePlayers;
  readonly #masters: RemoteMasters;
  readonly #chunklists: RemoteChunklists;
  readonly #media: RemoteMedia;
  #run: string | undefined;

  constructor(options: RemoteStreamOptions) {
    const { form, application, config, tokens, log, cache } = options;
    const onRun = (run: string): void => this.#note(run);
    this.#options = options;
    this.config = config;
    this.#link = new OwnerLink({ ...options, onGone: () => this.close() });
    this.#masters = new RemoteMasters(this.#link, onRun);
    this.#chunklists = new RemoteChunklists({ link: this.#link, onRun, log });
    this.#media = new RemoteMedia(this.#link, cache);
    this.#players = new RemotePlayers({
      tokens,
      guarded: isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind }),
      maxConnection: config.maxConnection,
      isAway: () => this.#link.away || this.#link.lost,
      report: (report) => this.#report(report),
    });
  }

  /** Nothing more comes of it: who asks again may find the stream elsewhere. */
  get ended(): boolean {
    return this.#chunklists.ended;
  }

  /** Nobody has it, as far as is known: what is here is only kept. */
  get lost(): boolean {
    return this.#link.lost;
  }

  /** Who has the stream by now, as the directory tells. */
  follow(owner: NodeIdentity | undefined): void {
    this.#link.follow(owner);
    if (this.lost) this.#chunklists.interrupt();
  }

  /** @param now by the monotonic clock */
  tick(now: number): void {
    this.#chunklists.expire(Date.now());
    this.#players.tick(now);
    if (this.#link.lostFor(now) > CONTINUED_MS) this.close();
  }

  /** Nothing more is known of it; idempotent. */
  close(): void {
    this.#chunklists.close('gone');
    this.#media.clear();
  }

  /** Players go on with the stream of this node, or ask again. */
  handOver(): void {
    this.#chunklists.close('overdue');
    this.close();
  }

  async master({ file, query, plays, base, terms, grant, signal }: MasterRequest): Promise<Master | undefined> {
    this.#use();
    const { tokens } = this.#options;
    const fill = ({ template }: MasterState, token: string | undefined): Text =>
      new Text(new MasterTemplate(template).fill(token, handedOn(query), base));
    if (this.config.originMode) {
      const state = await this.#masters.get(file, undefined, signal);
      const route = terms.vhost === undefined ? undefined : tokens.route(terms.vhost);
      return state && { text: fill(state, route), viewer: undefined };
    }
    const params = new URLSearchParams(query);
    const id = sessionId(params);
    // those the owner has to know at once
    const introduced = params.has('session') || (plays && grant.openings.length > 0);
    const state = await (introduced
      ? this.#introduce(file, id, { plays, terms, grant, signal })
      : this.#masters.get(file, undefined, signal));
    checkPresent(signal);
    if (state === undefined) return undefined;
    const token = state.token ?? tokens.issue(id, terms);
    const viewer = introduced || !plays ? undefined : await this.#players.admit(token);
    return { text: fill(state, token), viewer };
  }

  admit(token: string): Viewer | undefined | Promise<Viewer | undefined> {
    this.#use();
    return this.#players.admit(token);
  }

  sent(bytes: number, viewer: Viewer | undefined): void {
    if (viewer === undefined) this.#players.sent(bytes);
    else viewer.sent(bytes, Date.now());
  }

  file(name: string, directives: Directives, hold: Hold): FileAnswer | Promise<FileAnswer> {
    this.#use();
    if (name.endsWith('.m3u8')) return this.#chunklists.answer(name, directives, hold);
    return this.#media.get(name) ?? hold(() => this.#media.fetch(name), MAX_FETCHED_BY_ONE);
  }

  #use(): void {
    const { application, name } = this.#options;
    if (this.ended) throw kilnError('streamNotFound', `${application.internalName}/${name}`);
    this.usedAt = performance.now();
  }

  /** A master playlist for a player that the owner counts; with it goes the grant. @throws what the owner does */
  async #introduce(
    file: string,
    id: string,
    { plays, terms: { guarded, vhost }, grant, signal }: Pick<MasterRequest, 'plays' | 'terms' | 'grant' | 'signal'>,
  ): Promise<MasterState | undefined> {
    const introduce = (own: GrantState) => this.#masters.get(file, { id, plays, guarded, vhost, grant: own }, signal);
    if (!plays) return introduce({ until: grant.until, openings: [] });
    const handed = grant.handOver();
    const end = (reason: string): void => this.#options.access.adopt(handed).end(reason);
    try {
      const state = await introduce(handed);
      if (state === undefined) end('the stream has not started');
      return state;
    } catch (error) {
      end((error as Error).message);
      throw error;
    }
  }

  async #report(report: Report): Promise<readonly Verdict[] | undefined> {
    try {
      const { answer } = await this.#link.ask(this.#link.calls.report, { report });
      return answer.players;
    } catch (error) {
      const isForeseen = error instanceof AwayError || error instanceof KilnError;
      if (!isForeseen)
        this.#options.log.error(
          { err: error },
          'the players on this node could not be reported to the node that has the stream',
        );
      return undefined;
    }
  }

  /** Files of another run may have the names of those that are known here. */
  #note(run: string): void {
    if (this.#run !== undefined && this.#run !== run) {
      this.#media.clear();
      this.#masters.clear();
    }
    this.#run = run;
  }
}
