import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { QualityReports } from '../../quality/quality-reports.ts';
import { joinQuality, qualitySummaries, QualitySummary } from '../../quality/summary.ts';
import { answers, ok } from '../envelope.ts';
import type { AllNodes } from '../forwarding/all-nodes.ts';

/** Reports of players about their playback, of all nodes. @param node id of this node */
export function qualityRoutes(quality: QualityReports, nodes: AllNodes, node: string): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = {
      querystring: Type.Object({
        vhost: Type.Optional(Type.String({ description: 'Streams of this virtual host only' })),
        app: Type.Optional(Type.String({ description: 'Those of applications of this name only' })),
        stream: Type.Optional(Type.String({ description: 'Output streams of this name only' })),
      }),
      response: answers(Type.Array(QualitySummary)),
      summary: 'Show what players report of their playback by CMCD: startup, starvation, bitrate, latency, by stream',
    };
    app.get('/v1/cluster/quality', { schema }, async (request, reply) => {
      const own = qualitySummaries(quality.streams, node, request.query);
      const all = await nodes.ask(request, reply, QualitySummary, own);
      return ok(joinQuality([...all.values()].flat()));
    });
  };
}
