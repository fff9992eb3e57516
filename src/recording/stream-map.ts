import { isAbsolute, relative } from 'node:path';
import type { Static } from 'typebox';
import { RecordEntry } from '../config/elements/stream-map.ts';
import { kilnError } from '../errors.ts';
import { requestedStream, type MapFormat } from '../tasks/configured/map-format.ts';
import { asJson } from '../lib/as-json.ts';
import { randomId } from '../lib/random-id.ts';
import { checkedParts } from './check-paths.ts';
import { readRecord } from './request.ts';
import { recordPaths } from './settings.ts';

const ID_LENGTH = 6;
/** Placeholder for all roots where only the entry is checked. */
const ANY_PATHS = { root: '/', file: 'file', info: 'info' };

/**
 * Recordings that a stream map asks for (docs/compatibility.md#recordings-pushes-dumps).
 * @param folder as in `recordPaths`
 */
export function recordMap(folder: string): MapFormat<Static<typeof RecordEntry>> {
  return {
    root: 'RecordInfo',
    item: 'Record',
    schema: RecordEntry,
    task: (entry, names, application) => {
      const { filePath, infoPath, segmentInterval, segmentSchedule, segmentRule, metadata } = entry;
      const paths = application === undefined ? ANY_PATHS : recordPaths(application.config, {}, folder);
      if (paths === undefined) throw kilnError('publisherNotFound', names.vhost, names.app);
      const { id, spec } = readRecord({
        id: randomId(ID_LENGTH),
        stream: requestedStream(entry, names),
        filePath: below(paths.root, filePath),
        infoPath: below(paths.root, infoPath),
        interval: segmentInterval,
        schedule: segmentSchedule,
        ...(segmentRule !== '' && { segmentationRule: segmentRule }),
        metadata,
      });
      checkedParts(
        { ...paths, file: spec.filePath ?? paths.file, info: spec.infoPath ?? paths.info },
        { ...names, id },
        application?.config.publishers.file?.record?.upload?.prefix,
      );
      return { id, spec: asJson(spec) };
    },
  };
}

/** Removes the `/` that stands for the root, unless the root follows it. */
function below(root: string, path: string): string {
  const isInside = isAbsolute(path) && !relative(root, path).startsWith('..');
  return isInside ? path : path.replace(/^\/+/, '');
}
