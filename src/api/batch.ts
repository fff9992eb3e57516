import { STATUS_CODES } from 'node:http';
import type { FastifyReply } from 'fastify';
import Type, { type TSchema } from 'typebox';
import { kilnError } from '../errors.ts';
import type { Outcome } from '../management/dynamic-config.ts';

const Result = Type.Object({
  message: Type.String(),
  statusCode: Type.Integer(),
});

/** Answers of a batch call: a bare array with one result for each item, in their order. */
export function batchAnswers<T extends TSchema>(made: T) {
  const results = Type.Array(Type.Object({ ...Result.properties, response: Type.Optional(made) }));
  return { '2xx': results, 409: results, '4xx': Type.Unknown(), '5xx': Type.Unknown() };
}

/** A longer batch would keep other calls waiting for the disk. */
const MAX_ITEMS = 1000;

/** @throws bodyNotArray, batchTooLong */
export function itemsOf(body: unknown): readonly unknown[] {
  if (!Array.isArray(body)) throw kilnError('bodyNotArray');
  if (body.length > MAX_ITEMS) throw kilnError('batchTooLong', MAX_ITEMS);
  return body;
}

/** Sends the results under their common status, or 207 when they differ. The reason of a failed item is in the log only. */
export function sendBatch<T>(
  reply: FastifyReply,
  outcomes: readonly Outcome<T>[],
  view: (made: T) => unknown,
): FastifyReply {
  const results = outcomes.map((outcome) => {
    if ('made' in outcome) return { message: 'OK', response: view(outcome.made), statusCode: 200 };
    const { status, message } = outcome.error;
    reply.log.warn({ status }, `an item of a batch was refused: ${message}`);
    return { message: STATUS_CODES[status] ?? 'Error', statusCode: status };
  });
  const statuses = new Set(results.map(({ statusCode }) => statusCode));
  const [common = 200] = statuses;
  return reply.code(statuses.size > 1 ? 207 : common).send(results);
}
