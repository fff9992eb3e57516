import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type, { type Static } from 'typebox';
import { answers, ok } from '../envelope.ts';
import type { ReadOnlyLinks } from '../read-only-links.ts';

const DAY = 86_400;

const Link = Type.Object({
  path: Type.String({ description: 'Of the console on the port of the API; what follows # stays in the browser' }),
  credential: Type.String({ description: '`user:password` for programs, as the access token is sent' }),
  expires: Type.String({ description: 'ISO 8601' }),
});
export type ReadOnlyLink = Static<typeof Link>;

/** Links to the console for reading until they expire. */
export function readOnlyLinkRoutes(links: ReadOnlyLinks): FastifyPluginAsyncTypebox {
  return async (app) => {
    const schema = {
      // null: no body
      body: Type.Union(
        [
          Type.Object({
            expiresIn: Type.Optional(
              Type.Integer({ minimum: 60, maximum: 30 * DAY, description: 'Seconds; a day by default' }),
            ),
          }),
          Type.Null(),
        ],
        { examples: [{ expiresIn: 3600 }] },
      ),
      response: answers(Link),
      summary: 'Make a link to the console with which one may look until it expires',
    };
    app.post('/v1/readOnlyLinks', { schema }, async ({ body }) => {
      const expires = Math.floor(Date.now() / 1000) + (body?.expiresIn ?? DAY);
      const credential = await links.credential(expires);
      return ok({ path: `/console#link=${credential}`, credential, expires: new Date(expires * 1000).toISOString() });
    });
  };
}
