import { STATUS_CODES } from 'node:http';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import Type, { type TSchema } from 'typebox';
import { KilnError, kilnError } from '../errors.ts';
import { isDocument, type Document } from '../management/documents.ts';

export const CONTENT_TYPE = 'application/json;charset=UTF-8';

export const ErrorBody = Type.Object({ message: Type.String(), statusCode: Type.Integer() });

/** Schemas of a route's answers: the payload in its envelope, and the common errors. */
export function answers<T extends TSchema>(payload: T) {
  return {
    200: Type.Object({ message: Type.String(), response: payload, statusCode: Type.Integer() }),
    '4xx': ErrorBody,
    '5xx': ErrorBody,
  };
}

export const noPayload = { 200: ErrorBody, '4xx': ErrorBody, '5xx': ErrorBody };

/** @throws bodyNotObject */
export function objectOf(body: unknown): Document {
  if (!isDocument(body)) throw kilnError('bodyNotObject');
  return body;
}

/** The 404 of a path that names a session. */
export const noSession = {
  404: Type.Object({ message: Type.String(), response: Type.Optional(Type.String()), statusCode: Type.Integer() }),
};

export function ok<T>(response: T) {
  return { message: 'OK', response, statusCode: 200 };
}

export const done = { message: 'OK', statusCode: 200 };

/** Envelope for a created object that the answer does not show. */
export const created = { message: 'Created', statusCode: 201 };

/**
 * Answers any error: entries of errors.ts and rejections of Fastify with their text, others as 500 without details, which are
 * in the log.
 */
export function answerError(
  error: FastifyError | KilnError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const status = error instanceof KilnError ? error.status : (error.statusCode ?? 500);
  if (status >= 500) logFailure(error, request);
  const known = error instanceof KilnError || (status >= 400 && status < 500);
  const text = known ? error.message : STATUS_CODES[500];
  if (status === 401) reply.header('www-authenticate', 'Basic realm="Kiln"');
  reply.code(status).header('content-type', CONTENT_TYPE);
  // the one 404 with a form of its own (docs/compatibility.md#rest-answers)
  if (error.code === 'sessionNotFound') {
    return reply.send({ message: STATUS_CODES[status], response: text, statusCode: status });
  }
  return reply.send({ message: messageOf(error, text, status), statusCode: status });
}

/** Most texts have the server's form, and some their own (docs/compatibility.md#rest-answers). */
function messageOf(error: FastifyError | KilnError, text: string | undefined, status: number): string | undefined {
  if (isAboutConfig(error)) return `[Config] ${text}`;
  if (error.code === 'channelsForbidden') return text;
  return error.code === 'channelNotFound' ? `${text} (${status})` : `[HTTP] ${text} (${status})`;
}

/** Expected errors are logged without a stack. The failure of a pull was logged by the pull itself. */
function logFailure(error: FastifyError | KilnError, { log, method, url }: FastifyRequest): void {
  if (!(error instanceof KilnError)) log.error({ err: error, method, url }, 'the API call failed');
  else if (error.code !== 'pullFailed')
    log.error({ method, url, status: error.status }, `the API call failed: ${error.message}`);
}

/** Faults of configuration objects have a form of their own (docs/compatibility.md#rest-answers). */
function isAboutConfig(error: FastifyError | KilnError): boolean {
  return error.code === 'configInvalid' || error.code === 'valueMissing';
}
