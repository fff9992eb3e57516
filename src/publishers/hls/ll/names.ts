import type { FileNames } from '../../../packaging/playlist.ts';

import type { Init } from '../../../packaging/segment.ts';
import { contentHash } from '../answer/names.ts';

const SUFFIX = 'llhls';
const TRACK = /^(?:chunklist|iframes|init|seg|part)_(\d+)_(?:\d+_){0,2}(video|audio|subtitle)_/;

export type MediaFileNames = Required<FileNames>;

export interface NameParts {
  readonly trackId: number;
  readonly type: 'video' | 'audio';
  readonly streamKey: string;
  /** New streams keep the key of the one before: names of initializations then depend on their content. */
  readonly keepsKey: boolean;
  /** Query of every name, with its `?`; empty for none. */
  readonly query: string;
}

/** File names of one media track (docs/compatibility.md#hls). */
export function fileNames({ trackId, type, streamKey, keepsKey, query }: NameParts): MediaFileNames {
  const tail = `${type}_${streamKey}`;
  const versionOf = ({ version, data }: Init): string => {
    if (keepsKey) return `_v${contentHash(data)}`;
    return version > 0 ? `_v${version}` : '';
  };
  return {
    chunklist: () => `chunklist_${trackId}_${tail}_${SUFFIX}.m3u8${query}`,
    init: (init) => `init_${trackId}_${tail}${versionOf(init)}_${SUFFIX}.m4s${query}`,
    segment: (msn) => `seg_${trackId}_${msn}_${tail}_${SUFFIX}.m4s${query}`,
    part: (msn, index) => `part_${trackId}_${msn}_${index}_${tail}_${SUFFIX}.m4s${query}`,
  };
}

/** File names of one subtitle track. */
export function subtitleNames({ trackId, streamKey, query }: Omit<NameParts, 'type' | 'keepsKey'>): FileNames {
  const tail = `subtitle_${streamKey}_${SUFFIX}`;
  return {
    chunklist: () => `chunklist_${trackId}_${tail}.m3u8${query}`,
    segment: (msn) => `seg_${trackId}_${msn}_${tail}.vtt${query}`,
    part: (msn, index) => `part_${trackId}_${msn}_${index}_${tail}.vtt${query}`,
  };
}

/** Track of a file, such as `video_1`: type and id; undefined for any other name. */
export function trackOf(file: string): string | undefined {
  const [, id, type] = TRACK.exec(file) ?? [];
  return id === undefined ? undefined : `${type}_${id}`;
}

/** File name without its query. */
export function pathOf(name: string): string {
  const query = name.indexOf('?');
  return query < 0 ? name : name.slice(0, query);
}
