import type { FastifyRequest } from 'fastify';
import { goneSignal, httpAccess } from '../../../access/http-request.ts';
import { isGuarded } from '../../../config/enables.ts';
import type { Application } from '../../../core/application.ts';
import { kilnError } from '../../../errors.ts';
import { queryWithoutReport } from '../../../quality/carried-report.ts';
import type { Exchange } from '../answer/exchange.ts';
import { streamPath } from '../answer/names.ts';
import { isOver, MAX_TEXT_BYTES, type SessionClaims } from '../answer/token.ts';
import { handedOn } from '../blocking-reload/directives.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { MANIFEST, steeringManifest } from '../steering/manifest.ts';
import type { AskedHost } from '../steering/pathways.ts';
import { after, queryOf, type Directory, type Params } from './directory.ts';
import { respond } from './respond.ts';

type Request = FastifyRequest<{ Params: Params }>;

const MANIFEST_TYPE = 'application/vnd.apple.steering-list';
/** Parameters of the manifest's own URL; the others are those of the master playlist. */
const OWN = /^(?:playlist|format|_HLS_pathway|_HLS_throughput)(?:=|$)/;

/** Name of the steering manifest for a new player, with its query; undefined where it has no other pathway. */
export function steeringFor(
  form: HlsForm,
  { pathways, crossDomains }: Directory,
  application: Application,
  playlist: string,
  request: Request,
): string | undefined {
  const asked = askedHost(request);
  const { authorization, cookie, origin } = request.headers;
  const isOffered =
    // a page that sends these may not send them to another host
    authorization === undefined &&
    cookie === undefined &&
    form.config(application)?.originMode === false &&
    Buffer.byteLength(application.vhost.name) <= MAX_TEXT_BYTES &&
    asked !== undefined &&
    pathways.areOffered(asked) &&
    crossDomains.goElsewhere(application, origin);
  return isOffered ? `${MANIFEST}?${form.inTs ? 'format=ts&' : ''}playlist=${encodeURIComponent(playlist)}` : undefined;
}

/** Answers a player that asks from which nodes to play. @throws streamNotFound, fileNotFound, playlistSessionRefused, playlistSessionOver */
export function serveManifest(
  form: HlsForm,
  directory: Directory,
  application: Application | undefined,
  request: Request,
  exchange: Exchange,
): Promise<void> | void {
  const { app, stream: name, token } = request.params;
  const asked = askedHost(request);
  if (application === undefined) throw kilnError('streamNotFound', `${app}/${name}`);
  if (form.config(application)?.originMode !== false || asked === undefined) throw kilnError('fileNotFound');
  const session = sessionOf(form, directory, application, request.params);
  return after(directory.stream(application, name, undefined), (played) => {
    if (played === undefined) throw kilnError('streamNotFound', `${application.internalName}/${name}`);
    const query = queryOf(request.url);
    const values = new URLSearchParams(query);
    const playlist = session === undefined ? '' : (values.get('playlist') ?? '');
    const isNamed = playlist !== '';
    const template = isNamed ? played.stream.template(playlist, undefined, goneSignal(exchange.response)) : undefined;
    return after(template, (found) => {
      // the player may have one of the nodes that only its URIs lead to
      if (isNamed && found === undefined) throw kilnError('streamInterrupted');
      const children = found?.uris(token, handedOn(ownQuery(query)), streamPath(application.name, name));
      const current = values.get('_HLS_pathway') ?? undefined;
      const ways = directory.pathways.of({
        ...asked,
        stream: `${application.internalName}/${name}`,
        owner: directory.owner(application, name),
        session: session?.id ?? request.ip,
        current,
      });
      const body = Buffer.from(JSON.stringify(steeringManifest(ways, asked.origin, children)));
      directory.counts.answered('other', 200);
      respond(exchange, { status: 200, headers: { 'content-type': MANIFEST_TYPE }, body: [body] });
    });
  });
}

/** Session of a player; undefined where none is needed and none is named. @throws playlistSessionRefused, playlistSessionOver */
function sessionOf(
  form: HlsForm,
  { tokens }: Directory,
  application: Application,
  { stream, token }: Params,
): SessionClaims | undefined {
  const session = token === undefined ? undefined : tokens(application, stream).verify(token);
  const isGuardedHere = isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind });
  if (session === undefined && (token !== undefined || isGuardedHere)) throw kilnError('playlistSessionRefused');
  if (session !== undefined && isOver(session)) throw kilnError('playlistSessionOver');
  return session;
}

/** Query of the master playlist that a manifest belongs to. */
function ownQuery(query: string): string {
  const pairs = queryWithoutReport(query).split('&');
  return pairs.filter((pair) => !OWN.test(pair)).join('&');
}

/** The host that a request was sent to; undefined where that is not known. */
function askedHost(request: Request): AskedHost | undefined {
  const { url, isPortAssumed } = httpAccess(request.raw, request);
  if (!URL.canParse(url)) return undefined;
  const asked = new URL(url);
  if (isPortAssumed === true) asked.port = '';
  const { origin } = asked;
  return { origin, isSecure: [origin, request.headers.origin].some((one) => one?.startsWith('https:')) };
}
