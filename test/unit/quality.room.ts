import { importRoom } from '../support/runner/rooms.ts';

await importRoom('unit/quality');
