import type { Cluster, NodeIdentity } from '#cluster';
import type { Access } from '../../../access/access.ts';
import type { GrantState } from '../../../access/grant.ts';
import { RecentSet } from '../../../lib/recent-set.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import { checkPresent } from '../../../access/request.ts';
import { isGuarded } from '../../../config/enables.ts';
import type { HlsPublisherConfig } from '../../../config/model.ts';
import type { Application } from '../../../core/application.ts';
import { sessionId } from '../../../core/session.ts';
import { KilnError, kilnError } from '../../../errors.ts';
import type { Logger } from '../../../log/log.ts';
import type { PeerCalls } from '../../../peers/peer-calls.ts';
import { CONTINUED_MS } from '../../../directory/stream-names.ts';
import type { StreamDirectory } from '../../../directory/stream-directory.ts';
import type { RelayTree } from '../../../directory/relay-tree.ts';
import type {
  Directives,
  FileAnswer,
  Hold,
  Master,
  MasterRequest,
  PlayedFiles,
  PlayedViewers,
  Viewer,
} from '../answer/played-stream.ts';
import { handedOn } from '../blocking-reload/directives.ts';
import { Player, Players, toViewer } from '../sessions/players.ts';
import { SessionGrants } from '../sessions/session-grants.ts';
import { silenceMs } from '../blocking-reload/wait.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { MasterTemplate } from '../master/master-template.ts';
import { defaultQuery } from '../answer/names.ts';
import { Text } from '../answer/text.ts';
import type { SessionTokens } from '../answer/token.ts';
import type { Outcome } from '../blocking-reload/waiters.ts';
import { WatchingNodes } from '../sessions/watching-nodes.ts';
import type { PlayerCount, Relayed } from './answers.ts';
import type { HomeNodes } from '../sessions/home-nodes.ts';
import type { MediaCache } from '../answer/media-cache.ts';
import { RemoteChunklists } from './chunklists.ts';
import { Feed } from './feed.ts';
import { AwayError, OwnerLink, treeKey } from './link.ts';
import { RemoteMasters } from './masters.ts';
import { listOfIFrames } from '../rewind/shelf.ts';
import { RemoteMedia } from './media.ts';
import { RemotePast } from './past.ts';
import { RemotePlayers } from '../sessions/remote-players.ts';
import type { MasterState, Report, Verdict } from '../sessions/wire.ts';

/** Simultaneous fetches per connection: caches in front of players ask for many. */
const MAX_FETCHED_BY_ONE = 64;
/** Timeout for the owner's list of kicked sessions, for which new players wait. */
const KICKED_TIMEOUT_MS = 1000;

export interface RemoteStreamOptions {
  readonly form: HlsForm;
  readonly cluster: Pick<Cluster, 'connect'>;
  readonly calls: PeerCalls;
  readonly directory: Pick<StreamDirectory, 'locate' | 'mayMove'>;
  readonly tree: RelayTree;
  readonly application: Application;
  readonly config: HlsPublisherConfig;
  /** As viewers ask for it. */
  readonly name: string;
  readonly owner: NodeIdentity;
  /** Name of the input stream on the owner. */
  readonly input: string;
  readonly cache: MediaCache;
  readonly tokens: SessionTokens;
  readonly access: Pick<Access, 'adopt' | 'resume'>;
  readonly homes: HomeNodes;
  readonly log: Logger;
}

/**
 * HLS of an output stream of another node: each file is fetched once for all players here. While its publisher is away, and while
 * its node does not answer, players get the state known here.
 */
export class RemoteStream implements PlayedFiles, PlayedViewers, PlayerCount {
  readonly config: HlsPublisherConfig;
  /** When a client last asked for it, by the monotonic clock. */
  usedAt = performance.now();
  readonly #options: RemoteStreamOptions;
  readonly #link: OwnerLink;
  readonly #feed: Feed;
  /** Nodes that relay from this one. */
  readonly #children = new WatchingNodes(() => () => {});
  /** Players that the owner counts. */
  readonly #players: RemotePlayers;
  /** Players that this node has admitted and counts. */
  readonly #own: Players;
  /** Since when this node learns of kicked sessions, in milliseconds since the epoch; the owner knows the earlier ones. */
  readonly #since = Date.now();
  #kickedLearned: Promise<void> | undefined;
  /** Output stream of the players counted here; undefined while none are. */
  #view: OutputStream | undefined;
  readonly #masters: RemoteMasters;
  readonly #chunklists: RemoteChunklists;
  readonly #media: RemoteMedia;
  /** undefined where players do not rewind. */
  readonly #past: RemotePast | undefined;
  #run: string | undefined;
  readonly #relayed: Relayed = {
    master: (file, holdMs) => this.#masters.state(file, holdMs),
    chunklist: (file, wanted, holdMs) => this.#chunklists.state(file, wanted, holdMs),
    media: async (file, fetches) => {
      const here = this.#media.get(file);
      if (here === undefined && !fetches) throw kilnError('fileNotFound');
      return here ?? (await this.#media.fetch(file));
    },
    past: async (file, from, until) => await this.#past?.state(file, from, until),
  };

  constructor(options: RemoteStreamOptions) {
    const { form, cluster, calls, application, config, name, tokens, access, log, cache } = options;
    const onRun = (run: string): void => this.#note(run);
    this.#options = options;
    this.config = config;
    this.#link = new OwnerLink({ ...options, onGone: () => this.close() });
    this.#masters = new RemoteMasters(this.#link, onRun);
    const viewers = (): number => (this.#view?.sessions.size ?? 0) + this.#children.viewers;
    this.#feed = new Feed({
      form,
      cluster,
      link: this.#link,
      path: { vhost: application.vhost.name, app: application.name, stream: name },
      viewers,
      wantsParts: () => this.#media.wantsParts,
      onState: (file, state, owner) => this.#chunklists.take(file, state, owner),
      onPart: (file, part) => this.#media.put(file, part),
      onChange: () => this.#media.check(),
      onFault: (error) => this.#chunklists.onFault(error),
    });
    if (config.dvr?.enable === true) {
      const path = { vhost: application.vhost.name, app: application.name, stream: name };
      const event = form.inTs && config.dvr.eventPlaylistType;
      this.#past = new RemotePast({ link: this.#link, calls, path, query: defaultQuery(config), event });
    }
    this.#chunklists = new RemoteChunklists({
      link: this.#link,
      feed: this.#feed,
      form,
      viewers,
      past: this.#past,
      onRun,
      log,
    });
    this.#media = new RemoteMedia(this.#link, cache, (file) => this.#chunklists.expects(file));
    const guarded = isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind });
    this.#own = new Players({
      kind: form.kind,
      tokens,
      guarded,
      // ended openings need not be remembered here
      grants: new SessionGrants(new RecentSet<string>(0), (id) => this.#own.leave(id)),
      resume: (until, openings) => access.resume(until, openings),
    });
    this.#players = new RemotePlayers({
      tokens,
      guarded,
      maxConnection: config.maxConnection,
      isAway: () => this.#link.away || this.#link.lost,
      report: (report) => this.#report(report),
    });
  }

  get ended(): boolean {
    return this.#chunklists.ended;
  }

  /** True while no owner is known: the stream is only kept for its return. */
  get lost(): boolean {
    return this.#link.lost;
  }

  follow(owner: NodeIdentity | undefined): void {
    this.#link.follow(owner);
    if (!this.lost) return;
    this.#chunklists.interrupt();
    this.#unview('the publisher of the stream has gone');
  }

  /** @param now by the monotonic clock */
  tick(now: number): void {
    this.#chunklists.expire(Date.now());
    this.#masters.expire(Date.now());
    this.#players.tick(now);
    this.#options.homes.tick(now);
    const { targetDuration = this.config.segmentDuration } = this.#chunklists;
    const before = Date.now() - silenceMs(targetDuration);
    this.#own.expire(before, Date.now());
    this.#children.expire(before);
    this.#link.tick();
    this.#feed.tick(now);
    if (this.#link.lostFor(now) > CONTINUED_MS) this.close();
  }

  /** Idempotent. */
  close(): void {
    this.#feed.close();
    this.#masters.close('gone');
    this.#chunklists.close('gone');
    this.#media.clear();
    this.#unview('the stream is played here no more');
  }

  /** Lets players go on with the stream of this node, or ask again. */
  handOver(): void {
    this.#masters.close('overdue');
    this.#chunklists.close('overdue');
    this.close();
  }

  async template(file: string, start: number | undefined, signal: AbortSignal): Promise<MasterTemplate | undefined> {
    this.#use();
    const state = await this.#masters.get(file, { ownerCounts: false, start }, signal);
    return state && new MasterTemplate(state.template);
  }

  async master(asked: MasterRequest): Promise<Master | undefined> {
    const { file, query, start, steering, plays, base, terms, grant, signal } = asked;
    this.#use();
    const { tokens, homes } = this.#options;
    const fill = ({ template }: MasterState, token: string | undefined): Text =>
      new Text(new MasterTemplate(template).steered(steering).fill(token, handedOn(query), base));
    if (this.config.originMode) {
      const state = await this.#whenStarted(asked, () =>
        this.#masters.get(file, { ownerCounts: false, start }, signal),
      );
      const route = terms.vhost === undefined ? undefined : tokens.route(terms.vhost);
      return state && { text: fill(state, route), viewer: undefined };
    }
    const params = new URLSearchParams(query);
    const id = sessionId(params);
    const home = homes.forNew(params, terms);
    const isOwn = home !== undefined;
    // the owner has to know these at once
    const introduced = params.has('session') || (plays && grant.openings.length > 0);
    const state = await (introduced
      ? this.#introduce(id, asked)
      : this.#whenStarted(asked, () => this.#masters.get(file, { ownerCounts: !isOwn, start }, signal)));
    checkPresent(signal);
    if (state === undefined) return undefined;
    const token = state.token ?? tokens.issue(id, { ...homes.readable(terms), home });
    if (introduced || !plays) return { text: fill(state, token), viewer: undefined };
    return { text: fill(state, token), viewer: await (isOwn ? this.admitHere(token) : this.#players.admit(token)) };
  }

  admit(token: string): Viewer | undefined | Promise<Viewer | undefined> {
    this.#use();
    if (this.#own.knows(token)) return this.admitHere(token);
    const { homes, tokens } = this.#options;
    const home = homes.of(token);
    if (home === 'owner') return this.#players.admit(token);
    if (home !== 'self') {
      // nodes that play a stream learn of kicked sessions
      this.#viewHere();
      if (this.#own.keepsOut(home.session)) throw kilnError('playlistSessionRefused');
      return homes.admit(home, token);
    }
    const issued = tokens.verify(token)?.issued ?? Infinity;
    return issued < this.#since ? this.#learnKicked().then(() => this.admitHere(token)) : this.admitHere(token);
  }

  /** Counts a player that this node admitted; another node may have served it. */
  admitHere(token: string, seen = Date.now()): Viewer | undefined {
    this.usedAt = performance.now();
    this.#viewHere();
    return toViewer(this.#own.admit(token, seen));
  }

  hasKicked(token: string): boolean {
    return this.#own.hasKicked(token);
  }

  sent(bytes: number, viewer: Viewer | undefined, now = Date.now()): void {
    if (viewer instanceof Player) this.#view?.counters.sentTo(viewer.kind, bytes, now);
    else this.#options.application.counters.viewing.sentForOthers += bytes;
    if (viewer === undefined) this.#players.sent(bytes);
    else viewer.sent(bytes, now);
  }

  sentElsewhere(bytes: number, viewer: Viewer | undefined, now: number): void {
    this.#options.application.counters.viewing.sentByOthers += bytes;
    this.sent(bytes, viewer, now);
  }

  file(name: string, directives: Directives, hold: Hold, viewer?: Viewer): FileAnswer | Promise<FileAnswer> {
    this.#use();
    const list = listOfIFrames(name);
    if (list !== undefined && this.#past !== undefined) return this.#iFrames(this.#past, list, hold);
    if (name.endsWith('.m3u8')) return this.#chunklists.answer(name, directives, hold, viewer);
    return this.#media.get(name) ?? hold(() => this.#media.fetchHeld(name), MAX_FETCHED_BY_ONE);
  }

  async #iFrames(past: RemotePast, list: string, hold: Hold): Promise<FileAnswer> {
    return { kind: 'chunklist', text: await hold(() => past.iFrames(list)), asNamed: false };
  }

  /**
   * Serves a node that relays from this one.
   * @param owner of the stream, as that node knows it, by incarnation
   * @param viewers of that node, if it reports them
   * @throws AwayError where this node does not get the stream from that owner; streamNotFound, relayedEnough where that node is
   * to ask another
   */
  passOn(from: NodeIdentity, owner: string, viewers?: number): Relayed {
    this.#use();
    const { form, tree, application, name } = this.#options;
    const isPlaced = tree.mayFeed(treeKey(form, application, name), from);
    if (!isPlaced) throw kilnError('streamNotFound', `${application.internalName}/${name}`);
    if (owner !== this.#link.owner.incarnation) throw new AwayError('this node knows another owner of the stream');
    if (!this.#children.has(from) && this.#children.size >= tree.mostChildren) throw kilnError('relayedEnough');
    this.#children.see(from, viewers);
    return this.#relayed;
  }

  /** Begins to count players here, unless the stream has no publisher. */
  #viewHere(): void {
    const { application, name, input } = this.#options;
    if (this.#view !== undefined || this.lost || this.ended || application.closed) return;
    const view = application.viewFiles(input, name, { type: 'Ovt', kind: 'ovt' });
    this.#view = view;
    this.#own.attach(view);
    view.once('close', () => {
      this.#own.detach();
      this.#view = undefined;
    });
  }

  #unview(reason: string): void {
    this.#view?.input.close(reason);
  }

  /** Learns of earlier kicked sessions. Never rejects: then players are admitted as far as this node knows. */
  #learnKicked(): Promise<void> {
    const { calls, application, name: stream } = this.#options;
    const names = { vhost: application.vhost.name, app: application.name, stream };
    this.#kickedLearned ??= calls.call(this.#link.owner, this.#link.calls.kicked, names, KICKED_TIMEOUT_MS).then(
      (kicked) => this.#own.keepOut(kicked),
      () => (this.#kickedLearned = undefined),
    );
    return this.#kickedLearned;
  }

  #use(): void {
    const { application, name } = this.#options;
    if (this.ended) throw kilnError('streamNotFound', `${application.internalName}/${name}`);
    this.usedAt = performance.now();
  }

  /** Loads a playlist, held until there is something to play; undefined when there was nothing by the end of that. */
  async #whenStarted(
    { file, since, hold, signal }: MasterRequest,
    load: () => Promise<MasterState | undefined>,
  ): Promise<MasterState | undefined> {
    for (let outcome: Outcome = 'ready'; ;) {
      const state = await load();
      if (state !== undefined || outcome === 'overdue') return state;
      outcome = await hold((onLeft) => this.#masters.whenStarted(file, onLeft, since));
      checkPresent(signal);
      if (this.ended && outcome === 'overdue') throw kilnError('streamInterrupted');
      this.#use();
    }
  }

  /** Gets a master playlist for a player that the owner counts, and hands over the grant. @throws errors of the owner */
  async #introduce(id: string, asked: MasterRequest): Promise<MasterState | undefined> {
    const {
      file,
      start,
      plays,
      terms: { guarded, vhost },
      grant,
      signal,
    } = asked;
    const introduce = (own: GrantState) => {
      const session = { id, plays, guarded, vhost, grant: own };
      return this.#whenStarted(asked, () => this.#masters.get(file, { session, ownerCounts: true, start }, signal));
    };
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

  /** Clears the caches for a new run, whose files may have the same names. */
  #note(run: string): void {
    if (this.#run !== undefined && this.#run !== run) {
      this.#media.clear();
      this.#masters.clear();
      this.#past?.clear();
    }
    this.#run = run;
  }
}
