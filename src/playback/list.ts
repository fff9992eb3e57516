import type { Exchange } from '../publishers/hls/answer/exchange.ts';
import { respond } from '../publishers/hls/http/respond.ts';
import { readSpan, type Span } from './query.ts';
import { nothingOf, type RecordedFiles } from './recorded-files.ts';
import { admit, queryOf, viewerOf, type PlaybackRequest, type Viewers } from './requests.ts';
import type { Slots } from './slots.ts';
import { joined, type RecordedSpan } from './spans.ts';

/** Files that one list joins. */
const MAX_FILES = 10_000;

export interface ListServices extends Viewers {
  readonly files: RecordedFiles;
  readonly slots: Slots;
}

/** Serves `/app/stream/list`: the times of which there are recordings. @throws playbackQuery, playbackTooMany, playbackTooWide, playbackBusy; as `nothingOf` and `admit` */
export async function serveList(services: ListServices, request: PlaybackRequest, exchange: Exchange): Promise<void> {
  const span = readSpan(queryOf(request));
  const viewer = viewerOf(request, exchange);
  const { application, found, end } = await admit(services, viewer, exchange, (owner, stream) =>
    services.slots.during(viewer.client.realAddress, async () => {
      const { files, ...rest } = await services.files.find(owner, stream, span, MAX_FILES);
      if (files.length === 0) throw nothingOf(rest);
      return joined(files).map((one) => shown(one, span, request));
    }),
  );
  const { counters } = application;
  const { response } = exchange;
  const leave = counters.viewer('playback');
  response.once('close', () => {
    leave();
    end('the list was sent');
  });
  const headers = { 'content-type': 'application/json;charset=UTF-8' };
  respond(exchange, { status: 200, headers, body: [Buffer.from(JSON.stringify(found))] }, (bytes) =>
    counters.sentTo('playback', bytes),
  );
}

/** A span in the form of MediaMTX, cut to the time that was asked for. */
function shown({ start, end }: RecordedSpan, asked: Span, { protocol, host, params }: PlaybackRequest) {
  const from = Math.max(start, asked.start ?? start);
  const to = Math.min(end, asked.end ?? end);
  const duration = (to - from) / 1000;
  const query = new URLSearchParams({ start: new Date(from).toISOString(), duration: String(duration) });
  const path = [params.app, params.stream, 'get'].map(encodeURIComponent).join('/');
  return { start: new Date(from).toISOString(), duration, url: `${protocol}://${host}/${path}?${query}` };
}
