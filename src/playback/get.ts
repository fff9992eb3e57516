import type { ServerResponse } from 'node:http';
import type { Application } from '../core/application.ts';
import { sessionId } from '../core/session.ts';
import { matchesEtag } from '../lib/etag.ts';
import type { Exchange } from '../publishers/hls/answer/exchange.ts';
import { byteRange } from '../publishers/hls/http/respond.ts';
import type { ClipFile } from './clip/joined.ts';
import { openFmp4Clip } from './clip/fmp4.ts';
import { Mp4Clip } from './clip/mp4.ts';
import type { Clips } from './clips.ts';
import { readClip, readFormat, readId, type Clip } from './query.ts';
import { admit, queryOf, viewerOf, type PlaybackRequest, type Viewers } from './requests.ts';
import { sendPieces } from './send-pieces.ts';
import type { Slots } from './slots.ts';
import { unbroken } from './spans.ts';

export interface GetServices extends Viewers {
  readonly clips: Clips;
  readonly slots: Slots;
}

/** A response without its body. */
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  /** undefined: none. */
  readonly body: AsyncIterable<Buffer> | undefined;
}

/** Caches ask whether it is still the same: files may be deleted. */
const CACHING = 'private, no-cache';

/** Serves `/app/stream/get`: a clip as one file. @throws playbackQuery, playbackBusy; as `admit` and `Clips`; ClipError, SourceError */
export async function serveGet(services: GetServices, request: PlaybackRequest, exchange: Exchange): Promise<void> {
  const query = queryOf(request);
  const clip = readClip(query, Date.now());
  const format = readFormat(query);
  const id = readId(query);
  const viewer = viewerOf(request, exchange);
  const leave = services.slots.enter(viewer.client.realAddress);
  try {
    const session = sessionId(query);
    const { application, stream, found, end } = await admit(services, viewer, exchange, (owner, name) => {
      owner.recordingViewers.check(name, session);
      return open(services.clips, owner, name, clip, id, viewer.signal);
    });
    const uncount = application.counters.viewer('playback');
    const { out, leave: unlist } = application.recordingViewers.add(stream, session, () => {
      exchange.response.destroy();
    });
    try {
      const { signal } = viewer;
      const span = { start: clip.start, duration: clip.end - clip.start };
      const type = found[0]?.recording.leader.type === 'audio' ? 'audio/mp4' : 'video/mp4';
      const { status, headers, body } =
        format === 'mp4'
          ? ranged(await Mp4Clip.open(found, span, signal), type, request, signal)
          : { status: 200, headers: { 'content-type': type }, body: (await openFmp4Clip(found, span, signal)).pieces };
      // the rest of what an exchange lacks is that of all frameworks
      const response = exchange.response as ServerResponse;
      const first = await begun(body);
      const named = query.has('download') && { 'content-disposition': attachment(viewer.stream, clip) };
      response.writeHead(status, { ...exchange.headers, ...headers, ...named });
      if (first === undefined || request.method === 'HEAD') return void response.end();
      await sendPieces(response, first, signal, (bytes) => {
        application.counters.sentTo('playback', bytes);
        out.add(bytes, Date.now());
      });
    } finally {
      unlist();
      uncount();
      end('the clip was sent');
    }
  } finally {
    leave();
  }
}

/** The files of a clip up to its first break. */
async function open(
  clips: Clips,
  application: Application,
  stream: string,
  clip: Clip,
  id: string | undefined,
  signal: AbortSignal,
): Promise<ClipFile[]> {
  const opened: ClipFile[] = [];
  for (const file of unbroken(await clips.find(application, stream, clip, id)))
    opened.push(...(await clips.open(application, file, clip, signal)));
  return opened;
}

/** Content-Disposition of a file that is saved (RFC 6266), by a name in the form of RFC 8187. */
function attachment(stream: string, { start }: Clip): string {
  const name = `${stream}_${new Date(start).toISOString().replaceAll(/[-:]/g, '')}.mp4`;
  const encoded = encodeURIComponent(name).replaceAll(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
  return `attachment; filename*=UTF-8''${encoded}`;
}

function ranged(clip: Mp4Clip, type: string, { headers: asked, method }: PlaybackRequest, signal: AbortSignal): Answer {
  const { size, etag } = clip;
  const headers = { 'content-type': type, 'accept-ranges': 'bytes', etag, 'cache-control': CACHING };
  if (matchesEtag(asked['if-none-match'], etag)) return { status: 304, headers, body: undefined };
  const isSame = asked['if-range'] === undefined || asked['if-range'] === etag;
  // of other methods a range has no meaning (RFC 9110 section 14.2)
  const range = isSame && method === 'GET' ? byteRange(asked.range, size) : undefined;
  if (range === 'unsatisfiable') {
    const refused = { ...headers, 'content-range': `bytes */${size}`, 'content-length': 0 };
    return { status: 416, headers: refused, body: undefined };
  }
  const { first, last } = range ?? { first: 0, last: size - 1 };
  const length = { 'content-length': last + 1 - first };
  const body = method === 'HEAD' ? undefined : clip.read(first, last + 1, signal);
  if (range === undefined) return { status: 200, headers: { ...headers, ...length }, body };
  const part = { 'content-range': `bytes ${first}-${last}/${size}`, ...length };
  return { status: 206, headers: { ...headers, ...part }, body };
}

/** Waits for the first piece, so that what fails at the beginning is answered as an error. */
async function begun(body: AsyncIterable<Buffer> | undefined): Promise<AsyncIterable<Buffer> | undefined> {
  if (body === undefined) return undefined;
  const iterator = body[Symbol.asyncIterator]();
  const first = await iterator.next();
  return first.done === true ? undefined : resumed(first.value, iterator);
}

async function* resumed(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield first;
    for (;;) {
      const next = await rest.next();
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await rest.return?.();
  }
}
