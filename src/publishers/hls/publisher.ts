import { resolve } from 'node:path';
import { diskCalls } from '../../core/disk-calls.ts';
import type { FastifyPluginAsync } from 'fastify';
import type { Cluster } from '#cluster';
import type { Access } from '../../access/access.ts';
import type { Redirects } from '../../access/redirects.ts';
import type { CrossDomainsConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { sessionName } from '../../core/session.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Logger } from '../../log/log.ts';
import type { PeerCalls } from '../../peers/peer-calls.ts';
import type { QualityReports } from '../../quality/quality-reports.ts';
import type { RelayTree } from '../../directory/relay-tree.ts';
import type { SessionNames } from '../../directory/session-names.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { CrossDomainRules } from './http/cors.ts';
import type { PlayedStream } from './answer/played-stream.ts';
import { PlaylistCounts } from './answer/counts.ts';
import type { HlsForm } from './package/hls-form.ts';
import { OwnStreams, type OnDumped, type OwnStream } from './local/own-streams.ts';
import { Redirected } from './http/redirected.ts';
import { answerNodes, type PlayerCount, type StreamHere } from './remote/answers.ts';
import { treeKey } from './remote/link.ts';
import { FeedSessions } from './remote/feed-sessions.ts';
import { handOverBy } from './sessions/hand-over.ts';
import { answerElsewhere, findElsewhere, inTurn } from './rewind/elsewhere.ts';
import type { RunFiles } from './rewind/run-files.ts';
import { Pathways } from './steering/pathways.ts';
import { StreamFolder } from './rewind/stream-folder.ts';
import { HomeNodes, type CreateHomeNodes } from './sessions/home-nodes.ts';
import type { RemoteStream } from './remote/stream.ts';
import { RemoteStreams } from './remote/streams.ts';
import type { StreamPath } from './sessions/wire.ts';
import { playlistHandler, playlistRoutes, type PlaylistHandler } from './http/routes.ts';
import { SessionTokens } from './answer/token.ts';

export interface PlaylistPublisherOptions {
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'self' | 'nodes' | 'connect'>;
  readonly access: Access;
  readonly redirects: Redirects;
  readonly quality: QualityReports;
  readonly directory: StreamDirectory;
  readonly tree: RelayTree;
  readonly calls: PeerCalls;
  readonly sessionNames: SessionNames;
  /** Fetches a stream that no node has from an origin. Resolves to whether a node has it then. Absent without origins. */
  readonly bring?: (application: Application, name: string, query: URLSearchParams) => Promise<boolean>;
  readonly onDumped?: OnDumped | undefined;
  /** Folder of this node alone, for what its streams with DVR leave. Absent: it is not remembered. */
  readonly rewindFolder?: string;
  /** Folder of Server.xml, which paths are relative to. */
  readonly folder?: string;
  readonly log: Logger;
  /** Secrets of session tokens, the same on every node. */
  readonly tokenKeys: readonly Buffer[];
  /** For applications without CrossDomains. */
  readonly crossDomains?: CrossDomainsConfig;
}

/** Runs of streams of other nodes whose segments were asked for last. */
const MAX_RUNS = 16;

/** Packages the output streams of this node for one kind of HLS, and serves those of all nodes over HTTP. */
export class PlaylistPublisher {
  readonly routes: FastifyPluginAsync;
  /** Answers what a route of another module leaves to HLS. */
  readonly handler: PlaylistHandler;
  readonly form: HlsForm;
  readonly counts = new PlaylistCounts();
  readonly #options: PlaylistPublisherOptions;
  readonly #own: OwnStreams;
  readonly #remote: RemoteStreams;
  readonly #feeds: FeedSessions;
  readonly #attach = (output: OutputStream, application: Application) => this.#open(output, application);

  constructor(form: HlsForm, options: PlaylistPublisherOptions) {
    const { registry, cluster, access, redirects, directory, tree, calls, log, tokenKeys, crossDomains } = options;
    const tokens = (application: Application, name: string) =>
      new SessionTokens(
        tokenKeys,
        `${application.internalName}/${name}`,
        access.revocations.of({ vhost: application.vhost.name, app: application.name, stream: name }),
      );
    const homes: CreateHomeNodes = (application, name) =>
      new HomeNodes({ form, cluster, calls, application, name, tokens: tokens(application, name), log });
    this.form = form;
    this.#options = options;
    this.#own = new OwnStreams({
      form,
      directory,
      tokens,
      access,
      homes,
      handOver: handOverBy(form, calls, log),
      partDelay: this.counts.partDelay,
      onDumped: options.onDumped,
      elsewhere: findElsewhere(calls, cluster),
      pastCounts: this.counts.past,
      keyCounts: this.counts.keys,
      rewindFolder: options.rewindFolder,
      folder: options.folder ?? '.',
      log,
    });
    this.#remote = new RemoteStreams({ form, cluster, calls, directory, tree, tokens, access, homes, log });
    registry.on('output', this.#attach);
    const applicationOf = ({ vhost, app }: StreamPath): Application | undefined =>
      registry.vhosts.get(vhost)?.applications.get(app);
    const findOwn: StreamHere = (asked, query) => {
      const application = applicationOf(asked);
      const opening = application && this.#own.opening(application, asked.stream);
      if (opening !== undefined) return opening.then(() => findOwn(asked, query));
      const own = application && this.#own.find(application, asked.stream);
      return own && query !== undefined ? this.#named(own, application, asked.stream, query) : own;
    };
    const findPlayed = (asked: StreamPath): PlayerCount | undefined => {
      const application = applicationOf(asked);
      if (application === undefined) return undefined;
      const own = this.#own.find(application, asked.stream);
      return own?.stream.interrupted === false
        ? own.viewers
        : (this.#remote.find(application, asked.stream) ?? own?.viewers);
    };
    const source = answerNodes(form, calls, {
      own: findOwn,
      played: findPlayed,
      remote: async (asked) => {
        const application = applicationOf(asked);
        return application && (await this.#remote.locate(application, asked.stream));
      },
      isAtCapacity: (asked, from, watching) => {
        const application = applicationOf(asked);
        const key = application && treeKey(form, application, asked.stream);
        return key !== undefined && !tree.hasRoom(key, from, watching - 1);
      },
    });
    /** By their folder: they remember where they have found segments. */
    const runs = new BoundedMap<string, RunFiles>(MAX_RUNS);
    answerElsewhere(calls, form.kind, (names, run) => {
      const application = applicationOf(names);
      const dvr = application && form.config(application)?.dvr;
      if (dvr?.enable !== true) return undefined;
      const root = resolve(dvr.tempStoragePath);
      const files = new StreamFolder(root, names).run(run);
      const known = runs.get(files.folder) ?? files;
      runs.set(files.folder, known);
      return inTurn(known, diskCalls.of(root));
    });
    this.#feeds = new FeedSessions(form, calls, source, log);
    const found = {
      registry,
      access,
      tokens,
      owner: (application: Application, name: string) => directory.known(application, name)?.owner.id,
      redirected: new Redirected(registry, tokens),
      redirects,
      pathways: new Pathways(cluster, form.module),
      stream: (application: Application, name: string, query: URLSearchParams | undefined) =>
        this.#find(application, name, query),
      crossDomains: new CrossDomainRules(form.module, crossDomains),
      counts: this.counts,
      quality: options.quality,
    };
    this.handler = playlistHandler(form, found);
    this.routes = playlistRoutes(form, found, this.handler);
  }

  /** Finds an output stream of this node that has a publisher; undefined if this kind of HLS does not package it. */
  live(application: Application, output: string): OwnStream | undefined {
    const own = this.#own.find(application, output);
    return own?.stream.interrupted === false ? own : undefined;
  }

  /** Number of requests that wait for media or playlists of streams of this node. */
  get waiting(): number {
    return this.#own.waiting;
  }

  /** Number of connections that feed other nodes. */
  get feeds(): number {
    return this.#feeds.size;
  }

  /** Ends all packaging and all waits. Idempotent. Resolves when dumps are complete and sessions handed over. */
  async close(): Promise<void> {
    this.#options.registry.off('output', this.#attach);
    this.#feeds.close();
    this.#remote.close();
    await this.#own.close();
  }

  /** @param query of a request for a master playlist */
  #find(
    application: Application,
    name: string,
    query: URLSearchParams | undefined,
  ): PlayedStream | undefined | Promise<PlayedStream | undefined> {
    const opening = this.#own.opening(application, name);
    if (opening !== undefined) return opening.then(() => this.#find(application, name, query));
    const own = this.#own.find(application, name);
    if (own?.stream.interrupted === false)
      return query === undefined ? own : this.#named(own, application, name, query);
    const remote = this.#remote.find(application, name);
    // a stream that is only kept in case its publisher returns may be available from an origin
    const search = query === undefined ? (remote ?? own) === undefined : remote === undefined || remote.lost;
    return search ? this.#search(application, name, query) : remote ? played(remote) : own;
  }

  /**
   * Claims the session name of a player, if it gives one: viewers by other protocols may have it on other nodes.
   * @throws sessionExists
   */
  #named(
    own: OwnStream,
    application: Application,
    name: string,
    query: URLSearchParams,
  ): OwnStream | Promise<OwnStream> {
    const output = application.outputs.get(name);
    const id = own.stream.config.originMode ? undefined : sessionName(query);
    // this node continues or rejects the sessions that it knows by itself
    if (
      output === undefined ||
      id === undefined ||
      output.input.session(id) !== undefined ||
      output.input.kicked.has(id)
    )
      return own;
    return this.#options.sessionNames.take(application, output, id).then(() => own);
  }

  async #search(
    application: Application,
    name: string,
    query: URLSearchParams | undefined,
  ): Promise<PlayedStream | undefined> {
    const { bring } = this.#options;
    let located = await this.#remote.locate(application, name);
    if (located === undefined && query !== undefined && (await bring?.(application, name, query)) === true) {
      located = await this.#remote.locate(application, name);
    }
    if (located !== undefined) return played(located);
    const own = this.#own.find(application, name);
    const remote = own === undefined ? this.#remote.find(application, name) : undefined;
    return remote ? played(remote) : own;
  }

  #open(output: OutputStream, application: Application): void {
    if (output.input.isRelay) return;
    this.#own.open(output, application);
    const handOver = (): void => this.#remote.handOver(application, output.name);
    const opening = this.#own.opening(application, output.name);
    if (opening === undefined) handOver();
    else void opening.then(handOver);
  }
}

function played(remote: RemoteStream): PlayedStream {
  return { stream: remote, viewers: remote };
}
