import type { FastifyInstance, FastifyRequest, onResponseHookHandler } from 'fastify';
import type { Logger } from '../log/log.ts';
import type { AuditLog } from '../management/audit/log.ts';
import type { Patched } from '../management/dynamic-config.ts';
import type { Caller } from './caller.ts';
import { answeredBy } from './forwarding/stream-owner.ts';

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Actions that only list, although their method is POST. */
const LISTING = /:(?:records|pushes|hlsDumps)$/;
/** Actions that change no configuration and may be called many times a second. */
const FREQUENT = /:send(?:Events?|Subtitles)$/;
const MOST_NAMES = 20;
/** Limits of the length of a name and of a path in the audit log. */
const LONGEST = { name: 200, path: 2000 };

const unchanged = new WeakSet<FastifyRequest>();

/** Value of a change, for the answer; marks a call that has changed nothing, which is not logged. */
export function noted<T>(request: FastifyRequest, { value, isChanged }: Patched<T>): T {
  if (!isChanged) unchanged.add(request);
  return value;
}

/**
 * Logs each call that may have changed something: its object, its caller, and the id of the request. Calls that send events
 * with a stream are logged at debug level.
 */
export function logChanges(app: FastifyInstance, log: Logger): void {
  app.addHook('onRoute', (route) => {
    const methods = [route.method].flat();
    if (!methods.every((method) => READING.has(method))) route.onResponse = [route.onResponse ?? [], logChange].flat();
  });

  const logChange: onResponseHookHandler = (request, reply, done) => {
    if (mayChange(request) && reply.statusCode < 400) {
      const { method, ip, id } = request;
      const path = pathOf(request);
      const names = namesIn(request);
      const what = names.length === 0 ? path : `${path} (${names.join(', ')})`;
      const fields = { method, path, names, status: reply.statusCode, requestId: id, remote: ip };
      log[asks(request, FREQUENT) ? 'debug' : 'info']({ event: 'api.changed', ...fields }, `${method} ${what}`);
    }
    done();
  };
}

/**
 * Writes each call that may have changed something to the audit log, successful or not, except calls that send events with a
 * stream. Register it where only admitted calls arrive.
 */
export function auditChanges(
  app: FastifyInstance,
  audit: AuditLog,
  callerOf: (request: FastifyRequest) => Caller,
): void {
  const admitted = new WeakSet<FastifyRequest>();
  app.addHook('onRequest', (request, _reply, done) => {
    if (!READING.has(request.method)) admitted.add(request);
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    if (admitted.has(request) && mayChange(request) && !asks(request, FREQUENT)) {
      const path = pathOf(request);
      const names = namesIn(request).map((name) => name.slice(0, LONGEST.name));
      const node = answeredBy(request);
      audit.add({
        ...callerOf(request),
        method: request.method,
        path: path.slice(0, LONGEST.path),
        ...(names.length > 0 && { names }),
        status: reply.statusCode,
        requestId: request.id,
        ...(node !== undefined && { answeredBy: node }),
      });
    }
    done();
  });
}

function pathOf({ url }: FastifyRequest): string {
  return url.replace(/[?#].*$/s, '');
}

function mayChange(request: FastifyRequest): boolean {
  return !READING.has(request.method) && !asks(request, LISTING) && !unchanged.has(request);
}

/** Whether a request calls one of the actions. Their method is POST: other paths with such an end are names. */
function asks(request: FastifyRequest, actions: RegExp): boolean {
  return request.method === 'POST' && actions.test(pathOf(request));
}

/** Names of created objects, or ids of tasks, or the stream of a task: no path contains them. */
function namesIn({ body }: FastifyRequest): string[] {
  const items: unknown[] = Array.isArray(body) ? body : [body];
  return items.slice(0, MOST_NAMES).flatMap((item) => {
    const { name: given, id, stream, outputStream } = (item ?? {}) as Readonly<Record<string, unknown>>;
    const channel = (outputStream ?? stream ?? {}) as { readonly name?: unknown };
    const name = given ?? id ?? channel.name;
    return typeof name === 'string' ? [name] : [];
  });
}
