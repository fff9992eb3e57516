import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import type { TSchema } from 'typebox';
import type { ApplicationConfig } from '../../config/model.ts';
import type { Registry } from '../../core/registry.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import type { StreamDirectory } from '../../directory/stream-directory.ts';
import type { StreamName } from '../../directory/stream-key.ts';
import type { Counted } from '../../stats/counted.ts';
import type { AddedKind } from '../../stats/fields.ts';
import { applicationPlace, serverPlace, streamPlace, vhostPlace, type Place } from '../../stats/places.ts';
import type { SharedStatistics } from '../../stats/shared-statistics.ts';
import { StatisticsV1, statisticsV1 } from '../../stats/v1.ts';
import { StatisticsV2, statisticsV2 } from '../../stats/v2.ts';
import { answers, ok } from '../envelope.ts';
import { ApplicationPath, findApplication, findStream, StreamPath, VhostPath } from '../lookup.ts';
import { markStale } from '../forwarding/read-your-writes.ts';
import { ANSWERED_HERE } from '../forwarding/stream-owner.ts';

export interface StatisticsSources {
  readonly registry: Registry;
  readonly directory: StreamDirectory;
  /** Statistics of the whole cluster; undefined on a node that runs alone. */
  readonly shared: SharedStatistics | undefined;
  /** Publishers with a port of their own that OvenMediaEngine does not have. */
  readonly added: readonly AddedKind[];
}

type Show = (counted: Counted, added: ReadonlySet<AddedKind>) => object;

/** Counters of the server (v1 alone), virtual hosts, applications and input streams: on any node those of the cluster. */
export function statisticsRoutes(sources: StatisticsSources): FastifyPluginAsyncTypebox {
  const { registry } = sources;
  return async (app) => {
    const schema = { response: answers(StatisticsV1), summary: 'Statistics of the server' };
    app.get('/v1/stats/current', { schema }, (_request, reply) =>
      answer(sources, serverPlace(registry), statisticsV1, anyPlays(...registry.vhosts.values()), reply),
    );
    await app.register(levels(sources, '/v1/stats/current', StatisticsV1, statisticsV1));
    await app.register(levels(sources, '/v2/stats/current', StatisticsV2, statisticsV2));
  };
}

function levels(sources: StatisticsSources, base: string, shape: TSchema, show: Show): FastifyPluginAsyncTypebox {
  const { registry, shared } = sources;
  const response = answers(shape);
  return async (app) => {
    const vhost = { params: VhostPath, response, summary: 'Statistics of a virtual host' };
    app.get(`${base}/vhosts/:vhost`, { schema: vhost }, ({ params }, reply) => {
      const found = registry.vhost(params.vhost);
      return answer(sources, vhostPlace(found), show, anyPlays(found), reply);
    });

    const application = { params: ApplicationPath, response, summary: 'Statistics of an application' };
    app.get(`${base}/vhosts/:vhost/apps/:app`, { schema: application }, ({ params }, reply) => {
      const found = findApplication(registry, params);
      return answer(sources, applicationPlace(found), show, plays(found.config), reply);
    });

    const stream = { params: StreamPath, response, summary: 'Statistics of a stream' };
    const options = { schema: stream, config: ANSWERED_HERE };
    app.get(`${base}/vhosts/:vhost/apps/:app/streams/:stream`, options, ({ params }, reply) => {
      if (shared === undefined || !isElsewhere(sources, params)) findStream(registry, params);
      const found = findApplication(registry, params);
      return answer(sources, streamPlace(found, params.stream), show, plays(found.config), reply);
    });
  };
}

function isElsewhere({ directory }: StatisticsSources, name: StreamName): boolean {
  const owner = directory.knownOwner(name);
  return owner !== undefined && !owner.isSelf && owner.live;
}

function plays({ publishers }: ApplicationConfig): boolean {
  return publishers.playback !== undefined;
}

function anyPlays(...vhosts: readonly VirtualHost[]): boolean {
  return vhosts.some(({ applications }) => [...applications.values()].some(({ config }) => plays(config)));
}

function answer(
  { shared, added }: StatisticsSources,
  place: Place,
  show: Show,
  hasPlayback: boolean,
  reply: FastifyReply,
) {
  const kinds = new Set<AddedKind>([...added, ...(hasPlayback ? (['playback'] as const) : [])]);
  const [own] = place.live;
  // a node that runs alone shows its own counters
  if (shared === undefined) return ok(show(own as Counted, kinds));
  return shared.read(place).then(({ counted, stale }) => {
    if (stale) markStale(reply);
    return ok(show(counted, kinds));
  });
}
