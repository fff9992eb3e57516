import type { Static } from 'typebox';
import { PushEntry } from '../config/elements/stream-map.ts';
import { kilnError } from '../errors.ts';
import { requestedStream, type EntryNames, type MapFormat } from '../tasks/configured/map-format.ts';
import { asJson } from '../lib/as-json.ts';
import { randomId } from '../lib/random-id.ts';
import { readPush } from './request.ts';

const ID_LENGTH = 6;
/** URL of an RTMP server that ends with an application and a stream key, which may have a query. */
const RTMP_WITH_KEY = /^(rtmps?:\/\/[^/?#]+\/[^?#]*[^/?#])\/([^/?#]+(?:\?.*)?)$/i;

/** Pushes that a stream map asks for (docs/compatibility.md#recordings-pushes-dumps). */
export const PUSH_MAP: MapFormat<Static<typeof PushEntry>> = {
  root: 'PushInfo',
  item: 'Push',
  schema: PushEntry,
  task: (entry, names) => {
    const { protocol } = entry;
    const { url, streamKey } = destination(entry);
    const { id, spec } = readPush(
      {
        id: randomId(ID_LENGTH),
        stream: requestedStream(entry, names),
        protocol,
        // a name must not end the part of the URL that it is in
        url: expanded(url, names, encodeURIComponent),
        streamKey: expanded(streamKey, names, (name) => name),
      },
      names,
    );
    return { id, spec: asJson(spec) };
  },
};

/** Splits off the stream key that RTMP destinations may have at the end of the URL. */
function destination({ protocol, url, streamKey }: Static<typeof PushEntry>) {
  const [, server, key] = RTMP_WITH_KEY.exec(url) ?? [];
  if (protocol.toLowerCase() !== 'rtmp' || streamKey !== '' || server === undefined || key === undefined)
    return { url, streamKey };
  return { url: server, streamKey: key };
}

/** @throws taskInvalid for an unknown macro */
function expanded(template: string, names: EntryNames, encoded: (name: string) => string): string {
  const values = new Map([
    ['${Application}', names.app],
    ['${Stream}', names.stream],
    ['${SourceStream}', names.source],
  ]);
  return template.replaceAll(/\$\{[^}]*\}/g, (macro) => {
    const value = values.get(macro);
    if (value !== undefined) return encoded(value);
    throw kilnError('taskInvalid', `${macro} is none of the macros ${[...values.keys()].join(' ')}`);
  });
}
