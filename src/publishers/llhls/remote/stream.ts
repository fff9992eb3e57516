import type { Cluster, NodeIdentity, PeerResponse } from '#cluster';
import type { LlhlsPublisherConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import { sessionId } from '../../../core/session.ts';
import { KilnError, kilnError } from '../../../errors.ts';
import { CONTINUED_MS } from '../../../origins/stream-names.ts';
import type { StreamDirectory } from '../../../origins/stream-directory.ts';
import type { FileAnswer, Hold, Media, PlayedStream, Viewer } from '../answer.ts';
import { answerChunklist } from '../chunklist.ts';
import { handedOn, type Directives } from '../directives.ts';
import { MasterTemplate } from '../master-template.ts';
import { patienceMs } from '../patience.ts';
import { Text } from '../text.ts';
import type { SessionTokens } from '../token.ts';
import { MAX_WAITING } from '../waiters.ts';
import type { MediaCache } from './cache.ts';
import { AwayError, NotHereError, OwnerLink, type Call } from './link.ts';
import { RemoteMasters } from './masters.ts';
import { RemotePlayers } from './players.ts';
import { RemoteRendition, type RemoteContext } from './rendition.ts';
import {
  ChunklistState, HELD_MS, KIND_HEADER, MasterState, read, TYPE_HEADER, Verdicts, type Report, type Verdict,
} from './wire.ts';

const TIMEOUT_MS = 5000;
/** Files that are fetched at once; a player asks for a few, and the same as the others. */
const MAX_FETCHED = 256;
/** Of one connection: caches in front of players ask for many at once. */
const MAX_FETCHED_BY_ONE = 64;
/** Names of chunklists that are asked for; those that the owner does not know are forgotten. */
const MAX_RENDITIONS = 256;

export interface RemoteStreamOptions {
  readonly cluster: Pick<Cluster, 'forward'>;
  readonly directory: Pick<StreamDirectory, 'locate'>;
  readonly application: Application;
  readonly config: LlhlsPublisherConfig;
  /** As viewers ask for it. */
  readonly name: string;
  readonly owner: NodeIdentity;
  readonly cache: MediaCache;
  readonly tokens: SessionTokens;
}

/**
 * LL-HLS of an output stream that another node has: each file is fetched once for all players here. While its publisher
 * is away, and while the node that had it does not answer, players get what is known here.
 */
export class RemoteStream implements PlayedStream, RemoteContext {
  readonly config: LlhlsPublisherConfig;
  readonly link: OwnerLink;
  /** When somebody asked for it last, by the monotonic clock. */
  usedAt = performance.now();
  readonly #options: RemoteStreamOptions;
  readonly #players: RemotePlayers;
  readonly #renditions = new Map<string, RemoteRendition>();
  readonly #fetching = new Map<string, Promise<FileAnswer>>();
  readonly #masters = new RemoteMasters((file, session) => this.#loadMaster(file, session));
  #run: string | undefined;
  /** How long the owner holds a request. */
  #patienceMs = HELD_MS;
  #ended = false;

  constructor(options: RemoteStreamOptions) {
    const { cluster, application, config, name, owner, tokens } = options;
    this.#options = options;
    this.config = config;
    this.link = new OwnerLink(cluster, { vhost: application.vhost.name, app: application.name, stream: name }, owner);
    this.#players = new RemotePlayers({
      tokens,
      maxConnection: config.maxConnection,
      isAway: () => this.link.away,
      report: (report) => this.#report(report),
    });
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Nobody has it, as far as is known: what is here is only kept. */
  get lost(): boolean {
    return this.link.lostFor(performance.now()) > 0;
  }

  /** Who has the stream by now, as the directory tells. */
  follow(owner: NodeIdentity | undefined): void {
    this.link.follow(owner);
  }

  /** @param now by the monotonic clock */
  tick(now: number): void {
    for (const { waiters } of this.#renditions.values()) waiters.expire(Date.now());
    this.#players.tick(now);
    if (this.link.lostFor(now) > CONTINUED_MS) this.close();
  }

  /** Nothing more is known of it; idempotent. */
  close(): void {
    this.#ended = true;
    for (const { waiters } of this.#renditions.values()) waiters.close();
    this.#options.cache.drop(this);
  }

  /** Players go on with the stream of this node, or ask again. */
  handOver(): void {
    this.#ended = true;
    for (const { waiters } of this.#renditions.values()) waiters.close('overdue');
    this.close();
  }

  async master(file: string, query: string): Promise<Text | undefined> {
    this.#use();
    const { originMode } = this.config;
    const id = sessionId(new URLSearchParams(query));
    const named = !originMode && new URLSearchParams(query).has('session');
    const state = await this.#masters.get(file, named ? id : undefined);
    const token = originMode ? undefined : (state?.token ?? this.#options.tokens.issue(id));
    return state && new Text(new MasterTemplate(state.template).fill(token, handedOn(query)));
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
    if (name.endsWith('.m3u8')) return this.#chunklist(name, directives, hold);
    const known = this.#options.cache.get(this, name);
    if (known !== undefined) return known;
    return hold(() => this.#fetchOnce(name), MAX_FETCHED_BY_ONE);
  }

  async load(file: string, query: URLSearchParams, timeoutMs: number): Promise<ChunklistState | undefined> {
    const { status, body } = await this.#ask({ what: 'chunklist', file, query, timeoutMs });
    if (status === 201) return undefined;
    const state = read(ChunklistState, body);
    this.#patienceMs = patienceMs(state.targetDuration, false);
    this.#note(state.run);
    return state;
  }

  countWaiting(): void {
    let waiting = 0;
    for (const { waiters } of this.#renditions.values()) waiting += waiters.size;
    if (waiting >= MAX_WAITING) throw kilnError('tooManyWaiting');
  }

  #use(): void {
    const { application, name } = this.#options;
    if (this.#ended) throw kilnError('streamNotFound', `${application.internalName}/${name}`);
    this.usedAt = performance.now();
  }

  #chunklist(name: string, directives: Directives, hold: Hold): FileAnswer | Promise<FileAnswer> {
    let rendition = this.#renditions.get(name);
    if (rendition === undefined) {
      if (this.#renditions.size >= MAX_RENDITIONS) throw kilnError('tooManyWaiting');
      this.#renditions.set(name, (rendition = new RemoteRendition(name, this)));
    }
    const refreshed = rendition.refresh(directives.legacy ? 'legacy' : directives.skip ? 'delta' : 'full');
    if (refreshed === undefined) return answerChunklist(rendition, directives, hold);
    return hold(() => refreshed, MAX_FETCHED_BY_ONE).then(
      () => answerChunklist(rendition, directives, hold),
      (error: unknown) => {
        if (error instanceof KilnError && error.code === 'fileNotFound') this.#renditions.delete(name);
        throw error;
      },
    );
  }

  #fetchOnce(name: string): Promise<FileAnswer> {
    const under = this.#fetching.get(name);
    if (under !== undefined) return under;
    if (this.#fetching.size >= MAX_FETCHED) throw kilnError('tooManyWaiting');
    const fetching = this.#fetch(name).finally(() => this.#fetching.delete(name));
    this.#fetching.set(name, fetching);
    return fetching;
  }

  async #fetch(file: string): Promise<FileAnswer> {
    const call: Call = { what: 'media', file, timeoutMs: this.#patienceMs + TIMEOUT_MS };
    try {
      // what an owner of the past does not answer, the next one may
      const { headers, body } = (await this.link.unlessMoved(this.#ask(call))) ?? (await this.#ask(call));
      const media = { kind: headers[KIND_HEADER], type: headers[TYPE_HEADER], body: [body] } as Media;
      if (!this.#ended) this.#options.cache.put(this, file, media);
      return media;
    } catch (error) {
      throw error instanceof AwayError ? kilnError('streamInterrupted') : error;
    }
  }

  async #loadMaster(file: string, session: string | undefined): Promise<MasterState | undefined> {
    const query = session === undefined ? undefined : new URLSearchParams({ session });
    const { status, body } = await this.#ask({ what: 'master', file, query, timeoutMs: TIMEOUT_MS });
    if (status === 201) return undefined;
    const state = read(MasterState, body);
    this.#note(state.run);
    return state;
  }

  async #report(report: Report): Promise<readonly Verdict[] | undefined> {
    try {
      const { body } = await this.#ask({ what: 'sessions', file: '', body: Buffer.from(JSON.stringify(report)), timeoutMs: TIMEOUT_MS });
      return read(Verdicts, body).players;
    } catch (error) {
      if (error instanceof AwayError || error instanceof KilnError) return undefined;
      throw error;
    }
  }

  /** Asks whoever has the stream, also when that is another node than was thought. @throws AwayError, KilnError */
  async #ask(call: Call): Promise<PeerResponse> {
    const { owner } = this.link;
    try {
      return await this.link.ask(call);
    } catch (error) {
      if (error instanceof NotHereError) await this.#relocate();
      else if (!(error instanceof AwayError) || owner === this.link.owner) throw error;
    }
    try {
      return await this.link.ask(call);
    } catch (error) {
      throw error instanceof NotHereError ? this.#end() : error;
    }
  }

  /** @throws streamNotFound when there is nobody else who has it */
  async #relocate(): Promise<void> {
    const { directory, application, name } = this.#options;
    const asked = this.link.owner;
    const location = await directory.locate(application, name);
    if (location !== undefined) this.link.follow(location.owner);
    if (this.link.owner === asked) throw this.#end();
  }

  #end(): KilnError {
    const { application, name } = this.#options;
    this.close();
    return kilnError('streamNotFound', `${application.internalName}/${name}`);
  }

  /** Files of another run may have the names of those that are known here. */
  #note(run: string): void {
    if (this.#run !== undefined && this.#run !== run) {
      this.#options.cache.drop(this);
      this.#masters.clear();
    }
    this.#run = run;
  }
}
