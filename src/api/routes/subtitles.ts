import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { shown } from '../config-schema.ts';
import { done, noPayload } from '../envelope.ts';
import { findApplication, StreamPath } from '../lookup.ts';
import { readSubtitles } from '../requests/subtitles-request.ts';

/** Shows subtitles in the tracks of an input stream. */
export function subtitleRoutes(registry: Registry): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = {
      params: StreamPath,
      body: shown('StreamSubtitles'),
      response: noPayload,
      summary: 'Show subtitles',
    };
    const path = '/v1/vhosts/:vhost/apps/:app/streams/:stream(^[^:]+$)::sendSubtitles';
    app.post(path, { schema }, ({ params: { vhost, app: name, stream }, body }) => {
      const input = findApplication(registry, { vhost, app: name }).stream(stream);
      if (input === undefined) throw kilnError('eventStreamNotFound', `${vhost}/${name}/${stream}`);
      const cues = readSubtitles(body, (label) => input.subtitleTrack(label));
      if (!input.showCues(cues)) throw kilnError('subtitlesNotShown', `${vhost}/${name}/${stream}`);
      return done;
    });
  };
}
