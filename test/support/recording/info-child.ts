import { appendInfo } from '../../../src/recording/info-file.ts';
import { infoOf } from './info.ts';

/** Adds `count` entries with its name as their id to an info file: the other end of `info-file.test.ts`. */
const [path = '', id = '', count = ''] = process.argv.slice(2);
for (let sequence = 0; sequence < Number(count); sequence++) await appendInfo(path, infoOf(sequence, { id }));
