import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import { KilnError, kilnError } from '../../errors.ts';
import { ErrorBody } from '../envelope.ts';
import { ApplicationPath, findApplication } from '../lookup.ts';

/** Thumbnails of output streams of any node. */
export interface ThumbnailSource {
  /** @returns undefined for an unknown stream; @throws thumbnailNotStarted, thumbnailExtension, thumbnailMissing */
  newest(
    application: Application,
    stream: string,
    extension: string,
  ): Promise<{ readonly type: string; readonly image: Buffer } | undefined>;
}

/** In order of preference. */
const FORMATS = ['jpg', 'webp', 'png', 'avif'] as const;

const Query = Type.Object({
  format: Type.Optional(
    Type.Union(
      FORMATS.map((format) => Type.Literal(format)),
      { description: 'Absent: the first of these that there is' },
    ),
  ),
});

/** Newest thumbnail of an output stream, as a file, without the access control of viewers. */
export function thumbnailRoutes(
  registry: Registry,
  thumbnails: ThumbnailSource | undefined,
): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = {
      params: Type.Object({ ...ApplicationPath.properties, output: Type.String() }),
      querystring: Query,
      response: {
        200: {
          description: 'The picture',
          content: { 'image/*': { schema: Type.Unsafe<Buffer>({ type: 'string', format: 'binary' }) } },
        },
        '4xx': ErrorBody,
        '5xx': ErrorBody,
      },
      summary: 'Show the newest thumbnail of an output stream',
    };
    app.get('/v1/vhosts/:vhost/apps/:app/outputs/:output/thumbnail', { schema }, async ({ params, query }, reply) => {
      const application = findApplication(registry, params);
      if (thumbnails === undefined) throw kilnError('thumbnailMissing');
      const formats = query.format === undefined ? FORMATS : [query.format];
      const found = await first(formats, (format) => thumbnails.newest(application, params.output, format));
      if (found === undefined) throw kilnError('thumbnailStreamNotFound');
      return reply.header('content-type', found.type).header('cache-control', 'no-store').send(found.image);
    });
  };
}

/** Result of the first format that has a thumbnail. @throws error of the last one */
async function first<T>(formats: readonly string[], find: (format: string) => Promise<T>): Promise<T | undefined> {
  for (const [at, format] of formats.entries()) {
    try {
      return await find(format);
    } catch (error) {
      const isMissing = error instanceof KilnError && error.code === 'thumbnailMissing';
      if (!isMissing || at === formats.length - 1) throw error;
    }
  }
  return undefined;
}
