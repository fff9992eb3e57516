import type { FastifyPluginAsync, FastifyReply } from 'fastify';
import type { Cluster } from '#cluster';
import type { Access } from '../access/access.ts';
import type { CrossDomainsConfig } from '../config/model.ts';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { Logger } from '../log/log.ts';
import type { OtherNodes } from '../peers/other-nodes.ts';
import type { PeerCalls } from '../peers/peer-calls.ts';
import { exchangeOf, type Exchange } from '../publishers/hls/answer/exchange.ts';
import { CrossDomainRules } from '../publishers/hls/http/cors.ts';
import { isTs } from '../publishers/hls/http/kind-constraint.ts';
import { Redirected } from '../publishers/hls/http/redirected.ts';
import { respond } from '../publishers/hls/http/respond.ts';
import type { PlaylistPublisher } from '../publishers/hls/publisher.ts';
import type { StoredFiles } from '../recording/delivery/stored-files.ts';
import type { Recordings } from '../recording/finished/recordings.ts';
import { Clips } from './clips.ts';
import { FileReads } from './file-reads.ts';
import { serveGet } from './get.ts';
import { serveList } from './list.ts';
import { PreparedIndexes } from './prepared-indexes.ts';
import { RecordedFiles } from './recorded-files.ts';
import { refuse } from './refuse.ts';
import { applicationOf, handled, type PlaybackRequest } from './requests.ts';
import { PlaybackSessions } from './sessions.ts';
import { Slots } from './slots.ts';
import { applicationOfChild, serveChild, serveMaster, type ChildParams } from './vod/serve.ts';
import { Vods } from './vod/vod.ts';

export interface PlaybackPublisherOptions {
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'self' | 'nodes'>;
  readonly access: Access;
  readonly recordings: Recordings;
  readonly stored: Pick<StoredFiles, 'reaches' | 'read'>;
  /** undefined on a node that runs alone. */
  readonly others: OtherNodes | undefined;
  readonly calls: PeerCalls;
  /** Publishers of HLS on the same ports. */
  readonly playlists: readonly PlaylistPublisher[];
  /** Secrets of session tokens, the same on every node. */
  readonly tokenKeys: readonly Buffer[];
  /** For applications without CrossDomains. */
  readonly crossDomains?: CrossDomainsConfig | undefined;
  readonly log: Logger;
}

/** Requests that are answered at a time: each holds a piece of a recording, and the index of those that it plays. */
const MAX_CLIPS = 64;
const MAX_CLIPS_OF_ONE = 16;
/** Searches for recordings at a time, of lists and master playlists: each may read the indexes of many files. */
const MAX_LOOKUPS = 64;
const MAX_LOOKUPS_OF_ONE = 16;
const MAX_SEGMENTS = 512;
const MAX_SEGMENTS_OF_ONE = 128;
/** FileName that an output playlist may have, too. */
const RECORDED = 'recorded';

/** Serves the finished recordings of all nodes, where an application has Publishers/Playback. */
export class PlaybackPublisher {
  readonly routes: FastifyPluginAsync;
  readonly #reads: FileReads;
  readonly #prepared: PreparedIndexes;
  readonly #sessions: PlaybackSessions;

  constructor(options: PlaybackPublisherOptions) {
    const { registry, access, crossDomains: fallback, playlists } = options;
    const log = options.log.child({ module: 'playback' });
    this.#reads = new FileReads({ ...options, log });
    this.#prepared = new PreparedIndexes({
      ...options,
      reads: this.#reads,
      isPlayed: (name, app) =>
        registry.vhosts.get(name)?.applications.get(app)?.config.publishers.playback !== undefined,
      log,
    });
    this.#sessions = new PlaybackSessions(options);
    const files = new RecordedFiles({ ...options, log });
    const clips = new Clips({ files, reads: this.#reads });
    const crossDomains = new CrossDomainRules('playback', fallback);
    const common = { registry, access, crossDomains };
    const lookups = new Slots(MAX_LOOKUPS, MAX_LOOKUPS_OF_ONE);
    const get = { ...common, clips, slots: new Slots(MAX_CLIPS, MAX_CLIPS_OF_ONE) };
    const vod = {
      ...common,
      vods: new Vods({ clips, log }),
      sessions: this.#sessions,
      redirected: new Redirected(registry, (application, clip) => this.#sessions.tokens(application, clip)),
      slots: new Slots(MAX_SEGMENTS, MAX_SEGMENTS_OF_ONE),
      lookups,
    };
    const find = (request: PlaybackRequest): Application | undefined => applicationOf(common, request);
    this.routes = async (app) => {
      app.setErrorHandler((error: Error, request, reply) => refuse(error, exchangeOf(request, reply)));
      const route = <R extends PlaybackRequest>(
        url: string,
        serve: (request: R, exchange: Exchange) => Promise<void>,
        applicationOf: (request: R) => Application | undefined = find,
        otherwise: (request: R, reply: FastifyReply) => void = (_request, reply) => reply.callNotFound(),
      ): void => {
        const answer = handled(serve);
        app.route({
          method: ['GET', 'HEAD', 'OPTIONS'],
          url,
          exposeHeadRoute: false,
          handler: (request, reply) => {
            const application = applicationOf(request as R);
            if (application === undefined) return otherwise(request as R, reply);
            if (request.method !== 'OPTIONS') return answer(request as R, reply);
            const exchange = exchangeOf(request, reply);
            crossDomains.apply(application, exchange);
            respond(exchange, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
          },
        });
      };
      route('/:app/:stream/list', (request, exchange) =>
        serveList({ ...common, files, slots: lookups }, request, exchange),
      );
      route('/:app/:stream/get', (request, exchange) => serveGet(get, request, exchange));
      route(
        `/:app/:stream/${RECORDED}.m3u8`,
        (request, exchange) => serveMaster(vod, request, exchange),
        (request) => {
          const application = find(request);
          return application && hasOwnList(application) ? undefined : application;
        },
        (request, reply) => {
          const kind = isTs(request.url) ? 'hlsv3' : 'llhls';
          const publisher = playlists.find(({ form }) => form.kind === kind);
          if (publisher === undefined) return reply.callNotFound();
          Object.assign(request.params, { file: `${RECORDED}.m3u8` });
          publisher.handler(request as never, reply);
        },
      );
      route<PlaybackRequest<ChildParams>>(
        '/:app/:stream/:token/recorded/:clip/:file',
        (request, exchange) => serveChild(vod, request, exchange),
        (request) => applicationOfChild(vod, request),
      );
    };
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#sessions.close();
    await this.#prepared.close();
    await this.#reads.close();
  }
}

/** Whether an output playlist has the name. */
function hasOwnList({ config: { outputProfiles } }: Application): boolean {
  return outputProfiles.outputProfile.some(({ playlists }) => playlists.some(({ fileName }) => fileName === RECORDED));
}
