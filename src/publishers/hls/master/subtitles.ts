import type { SubtitleTrack } from '../../../core/track.ts';
import { describeLanguage } from './language.ts';

/** Group of the subtitles of a master playlist. */
const GROUP = 'subtitles';

/** A subtitle track with the URI of its media playlist. */
export interface ListedSubtitles {
  readonly track: Pick<
    SubtitleTrack,
    'publicName' | 'language' | 'characteristics' | 'isDefault' | 'autoSelect' | 'forced'
  >;
  readonly uri: string;
}

/** Lists subtitles (EXT-X-MEDIA, RFC 8216bis 4.4.6.1); '' for none. */
export function subtitleMembers(all: readonly ListedSubtitles[]): string {
  return all.map(member).join('');
}

/** SUBTITLES of a variant, after a comma; '' where there are none. */
export function subtitlesOf(all: readonly unknown[]): string {
  return all.length === 0 ? '' : `,SUBTITLES="${GROUP}"`;
}

function member({ track, uri }: ListedSubtitles): string {
  const { publicName = '', language, characteristics = '', isDefault, autoSelect, forced } = track;
  const { tag } = describeLanguage(language);
  const yes = (is: boolean): string => (is ? 'YES' : 'NO');
  let text = `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="${GROUP}",NAME="${quotable(publicName)}"`;
  text += `,DEFAULT=${yes(isDefault)},AUTOSELECT=${yes(autoSelect)},FORCED=${yes(forced)}`;
  if (tag !== undefined) text += `,LANGUAGE="${tag}"`;
  if (characteristics !== '') text += `,CHARACTERISTICS="${quotable(characteristics)}"`;
  return `${text},URI="${uri}"\n`;
}

/** Removes quotes and line breaks, which a quoted-string cannot have. */
export function quotable(text: string): string {
  return text.replace(/["\r\n]/g, '');
}
