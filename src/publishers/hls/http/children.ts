import { isGuarded } from '../../../config/enables.ts';
import type { Application } from '../../../core/application.ts';
import type { Viewing } from '../../../core/counters.ts';
import { kilnError, type KilnError } from '../../../errors.ts';
import { carriedReport, queryWithoutReport } from '../../../quality/carried-report.ts';
import type { Exchange } from '../answer/exchange.ts';
import type { FileAnswer, PlayedFiles, PlayedStream, Viewer } from '../answer/played-stream.ts';
import { parseDirectives, withoutDirectives } from '../blocking-reload/directives.ts';
import { holdOn } from '../blocking-reload/held-requests.ts';
import type { HlsForm } from '../package/hls-form.ts';
import { after, type Directory, type Params } from './directory.ts';
import { sendMedia, sendNothing, sendText, STARTING_STATUS } from './send.ts';

const PLAYLIST = '.m3u8';
/** Seconds. Without sessions only the players' own caches restrain those that ask without a pause. */
const ORIGIN_CHUNKLIST_AGE = 1;

/**
 * Serves a media playlist or media. Answers synchronously where possible; returns a promise for a request that waits.
 * @param query of the URL, without `?`
 * @throws streamNotFound; as PlayedViewers.admit and PlayedFiles.file
 */
export function serveChild(
  form: HlsForm,
  directory: Directory,
  application: Application | undefined,
  params: Params,
  query: string,
  exchange: Exchange,
): Promise<void> | void {
  const { app, stream: name } = params;
  if (application === undefined) throw kilnError('streamNotFound', `${app}/${name}`);
  return after(directory.stream(application, name, undefined), (played) => {
    if (played === undefined) throw notThere(form, directory, application, params);
    return after(admit(form, directory, application, played, params), (viewer) =>
      serveFile(form, directory, application, played, viewer, params, query, exchange),
    );
  });
}

/** Error for a missing stream: where access control is configured, only admitted players learn that it is missing. */
function notThere(
  form: HlsForm,
  { tokens }: Directory,
  application: Application,
  { stream: name, token }: Params,
): KilnError {
  const isPlayer = token !== undefined && tokens(application, name).verify(token) !== undefined;
  if (isPlayer || !isGuarded(application.vhost.config, { direction: 'outgoing', protocol: form.kind }))
    return kilnError('streamNotFound', `${application.internalName}/${name}`);
  return kilnError('playlistSessionRefused');
}

/** @throws as PlayedViewers.admit; fileNotFound */
function admit(
  form: HlsForm,
  { tokens }: Directory,
  application: Application,
  { stream, viewers }: PlayedStream,
  { stream: name, token, file }: Params,
): Viewer | undefined | Promise<Viewer | undefined> {
  if (stream.config.originMode) {
    if (token !== undefined && !tokens(application, name).isRoute(token)) throw kilnError('fileNotFound');
    return undefined;
  }
  if (token === undefined) throw kilnError(form.isChild(file) ? 'playlistSessionRefused' : 'fileNotFound');
  return viewers.admit(token);
}

function serveFile(
  form: HlsForm,
  directory: Directory,
  application: Application,
  { stream, viewers }: PlayedStream,
  viewer: Viewer | undefined,
  { file, stream: name }: Params,
  query: string,
  exchange: Exchange,
): Promise<void> | void {
  const { registry, counts } = directory;
  const asked = file.endsWith(PLAYLIST) ? queryWithoutReport(query) : '';
  const directives = form.directives ? parseDirectives(asked) : withoutDirectives(asked);
  const { cacheControl: ages } = stream.config;
  const onSent = (bytes: number): void => viewers.sent(bytes, viewer);
  return after(stream.file(file, directives, holdOn(exchange), viewer), (answer: FileAnswer) => {
    if (answer.kind === 'starting') {
      counts.answered('chunklist', STARTING_STATUS);
      return sendNothing(exchange);
    }
    counts.answered(answer.kind, 200);
    noteReport(directory, application, name, stream, query, exchange, form.rendition(file));
    if (answer.kind === 'chunklist') {
      const { chunklistMaxAge = stream.config.originMode ? ORIGIN_CHUNKLIST_AGE : 0 } = ages;
      const age = answer.asNamed ? ages.chunklistWithDirectivesMaxAge : chunklistMaxAge;
      return sendText(answer.text, age, exchange, onSent);
    }
    if (answer.kind !== 'init' && viewer !== undefined) noteJoin(registry.counters.viewing, form.kind, viewer);
    return sendMedia(answer, answer.kind === 'part' ? ages.partialSegmentMaxAge : ages.segmentMaxAge, exchange, onSent);
  });
}

/** Counts the report that a player's request carries, if any. @param query of its URL, without `?` */
export function noteReport(
  { quality }: Directory,
  { vhost, name: app }: Application,
  name: string,
  source: PlayedFiles,
  query: string,
  { request }: Exchange,
  rendition?: string,
): void {
  const report = carriedReport(query, request.headers);
  if (report !== undefined)
    quality.take(report, 'request', source, { vhost: vhost.name, app, stream: name }, rendition);
}

/** A player with an older token resumes its session: this is no join. */
const MAX_JOIN_MS = 60_000;
const joined = new WeakSet<Viewer>();

function noteJoin(viewing: Viewing, kind: HlsForm['kind'], viewer: Viewer): void {
  if (joined.has(viewer)) return;
  joined.add(viewer);
  const ms = Date.now() - viewer.createdTime;
  // the clock of the node that has issued the token may be ahead
  if (ms >= 0 && ms < MAX_JOIN_MS) viewing.joined(kind, ms / 1000);
}
