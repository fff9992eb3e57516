import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify';
import type { Application } from '../../../core/application.ts';
import { kilnError } from '../../../errors.ts';
import { BoundedMap } from '../../../lib/bounded-map.ts';
import { shortDigest } from '../../../lib/short-digest.ts';
import { TokenBucket } from '../../../lib/token-bucket.ts';
import { exchangeOf, type Exchange } from '../answer/exchange.ts';
import { isOver } from '../answer/token.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { answering } from './answering.ts';
import { REPORT_METHODS } from './cors.ts';
import { after, applicationOf, type Directory, type Params } from './directory.ts';
import { KIND } from './kind-constraint.ts';
import { respond } from './respond.ts';

/** `application/cmcd` is that of CTA-5004-B; pages that send by `navigator.sendBeacon` cannot choose freely. */
const TYPES = ['application/cmcd', 'text/cmcd', 'text/plain'];
/** Bytes of one request. */
const MAX_BODY = 64 * 1024;
/** Events of one request that are counted. */
const MAX_EVENTS = 100;
/** Requests of one session, or in OriginMode of one address: so many at once, then one in each interval. */
const BURST = 20;
const REFILL_MS = 500;
/** Sessions and addresses whose rate is known. */
const MAX_SESSIONS = 20_000;

type Path = Omit<Params, 'file'>;
type Request = FastifyRequest<{ Params: Path; Body: string | undefined }>;

/**
 * Takes event reports of players (CTA-5004-B) at `POST /app/stream/token/cmcd`, in OriginMode at `POST /app/stream/cmcd`: a report on each
 * line.
 */
export function reportRoutes(form: HlsForm, directory: Directory): FastifyPluginAsync {
  const rates = new BoundedMap<string, TokenBucket>(MAX_SESSIONS);
  return async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser(TYPES, { parseAs: 'string' }, (_request, body, done) => done(null, body));
    for (const { url, constraints } of places(form, app)) {
      const route = { url, constraints, bodyLimit: MAX_BODY };
      app.route<{ Params: Path; Body: string | undefined }>({
        ...route,
        method: 'POST',
        handler: (request, reply) => {
          const exchange = exchangeOf(request, reply);
          answering(form, directory, { ...request.params, file: '' }, exchange, () =>
            take(form, directory, rates, request, exchange),
          );
        },
      });
      app.route<{ Params: Path }>({
        ...route,
        method: 'OPTIONS',
        handler: (request, reply) => {
          const exchange = exchangeOf(request, reply);
          allow(form, directory, request, exchange);
          respond(exchange, { status: 200, headers: { 'access-control-allow-private-network': 'true' }, body: [] });
        },
      });
    }
  };
}

/** @throws streamNotFound, sessionNotFound, tooManyReports */
function take(
  form: HlsForm,
  directory: Directory,
  rates: Map<string, TokenBucket>,
  request: Request,
  exchange: Exchange,
): Promise<void> | void {
  const { app, stream: name, token } = request.params;
  const application = allow(form, directory, request, exchange);
  if (application === undefined) throw kilnError('streamNotFound', `${app}/${name}`);
  const session = token === undefined ? undefined : directory.tokens(application, name).verify(token);
  const isKnown = session === undefined ? isOrigin(form, application, token) : !isOver(session);
  if (!isKnown) throw kilnError('sessionNotFound');
  const client = shortDigest(token ?? request.ip);
  const rate = rates.get(client) ?? new TokenBucket(BURST, REFILL_MS);
  rates.set(client, rate);
  if (!rate.take()) throw kilnError('tooManyReports');
  return after(directory.stream(application, name, undefined), (played) => {
    if (played === undefined) throw kilnError('streamNotFound', `${app}/${name}`);
    const names = { vhost: application.vhost.name, app: application.name, stream: name };
    for (const line of linesOf(request.body ?? '')) directory.quality.take(line, 'event', played.stream, names);
    respond(exchange, { status: 200, headers: {}, body: [] });
  });
}

/** Without sessions there is nothing to name. */
function isOrigin(form: HlsForm, application: Application, token: string | undefined): boolean {
  return token === undefined && form.config(application)?.originMode === true;
}

/** URLs of the routes. Both kinds of HLS may share a port: `?format=ts` is for MPEG-TS then. */
function* places(form: HlsForm, app: FastifyInstance) {
  for (const url of ['/:app/:stream/:token/cmcd', '/:app/:stream/cmcd']) {
    const isTaken = app.hasRoute({ method: 'POST', url });
    if (form.inTs) yield { url, constraints: { [KIND]: 'ts' } };
    if (!form.inTs || !isTaken) yield { url, constraints: {} };
  }
}

function linesOf(body: string): string[] {
  const lines = body.split('\n', MAX_EVENTS).map((line) => line.trim());
  return lines.filter((line) => line !== '');
}

function allow(
  form: HlsForm,
  directory: Directory,
  { params, hostname }: FastifyRequest<{ Params: Path }>,
  exchange: Exchange,
): Application | undefined {
  const application = applicationOf(form, directory, { ...params, file: '' }, hostname);
  if (application !== undefined) directory.crossDomains.apply(application, exchange, REPORT_METHODS);
  return application;
}
