import type { Line } from './tags.ts';
import type { Report } from './rules.ts';

/** Version that a line needs (8). @param iFramesOnly whether the playlist has EXT-X-I-FRAMES-ONLY */
function needs({ name, value, attributes }: Line, iFramesOnly: boolean): number {
  let version = 1;
  const least = (needed: number, condition: boolean): void => {
    if (condition) version = Math.max(version, needed);
  };
  const method = attributes.get('METHOD') ?? '';
  least(2, attributes.has('IV'));
  least(3, name === 'EXTINF' && /^\d+\./.test(value));
  least(4, name === 'EXT-X-BYTERANGE' || name === 'EXT-X-I-FRAMES-ONLY');
  least(5, name === 'EXT-X-KEY' && (method === 'SAMPLE-AES' || attributes.has('KEYFORMAT')));
  least(5, name === 'EXT-X-KEY' && attributes.has('KEYFORMATVERSIONS'));
  least(iFramesOnly ? 5 : 6, name === 'EXT-X-MAP');
  if (name === 'EXT-X-MEDIA' && attributes.has('INSTREAM-ID')) {
    least(7, attributes.get('INSTREAM-ID')?.startsWith('SERVICE') === true);
    least(13, attributes.get('TYPE') !== 'CLOSED-CAPTIONS');
  }
  least(8, name === 'EXT-X-DEFINE');
  // a version is that of the server too (4.4.1.2), whose delta updates have it
  least(9, name === 'EXT-X-SKIP' || attributes.has('CAN-SKIP-UNTIL'));
  least(10, attributes.has('RECENTLY-REMOVED-DATERANGES') || attributes.has('CAN-SKIP-DATERANGES'));
  least(11, name === 'EXT-X-DEFINE' && attributes.has('QUERYPARAM'));
  least(
    12,
    [...attributes.keys()].some((attribute) => attribute.startsWith('REQ-')),
  );
  return version;
}

/** Attributes of the server, which a playlist may have under a version lower than that of its delta updates. */
function ofServer({ name }: Line): boolean {
  return name === 'EXT-X-SERVER-CONTROL';
}

/** Checks EXT-X-VERSION against what the playlist has. */
export function checkVersion(lines: readonly Line[], report: Report): void {
  const iFramesOnly = lines.some(({ name }) => name === 'EXT-X-I-FRAMES-ONLY');
  const declared = lines.find(({ name }) => name === 'EXT-X-VERSION');
  const version = Number(declared?.value ?? 1);
  let most = 1;
  for (const line of lines) {
    const needed = needs(line, iFramesOnly);
    most = Math.max(most, needed);
    if (needed <= version || ofServer(line)) continue;
    report(declared === undefined ? 'version-missing' : 'version-low', line.at, `${version}, ${line.name} ${needed}`);
  }
  if (version > most) report('version-high', declared?.at ?? 0, `${version}, ${most} would do`);
}
