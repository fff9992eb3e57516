import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Type from 'typebox';
import { Revocation, RevocationRequest, type Revocations } from '../../access/revocations.ts';
import { kilnError } from '../../errors.ts';
import { inStore } from '../../tasks/store-failure.ts';
import { answers, done, noPayload, ok } from '../envelope.ts';

const PATH = '/v1/cluster/revocations';

/** Sessions that an operator ends, and refuses for a time, by what their tokens or URLs carry. */
export function revocationRoutes(revocations: Revocations): FastifyPluginAsyncTypebox {
  return async (app) => {
    const list = { response: answers(Type.Array(Revocation)), summary: 'List what is revoked' };
    app.get(PATH, { schema: list }, () => ok(revocations.list()));

    const add = {
      body: RevocationRequest,
      response: answers(Revocation),
      summary: 'End the sessions on all nodes that match all that is given, and refuse such ones for a time',
    };
    app.post(PATH, { schema: add }, async ({ body }) => ok(await inStore(() => revocations.add(body))));

    const remove = {
      params: Type.Object({ revocation: Type.String() }),
      response: noPayload,
      summary: 'Take a revocation back: such sessions are admitted again',
    };
    app.delete(`${PATH}/:revocation`, { schema: remove }, async ({ params: { revocation } }) => {
      if (!(await inStore(() => revocations.remove(revocation)))) throw kilnError('revocationNotFound', revocation);
      return done;
    });
  };
}
