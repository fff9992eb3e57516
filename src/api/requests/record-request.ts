import Type from 'typebox';
import { SEGMENTATION_RULES } from '../../recording/request.ts';
import { TaskStreamBody } from './task-actions.ts';

/** Body in the description of the API; `readRecord` checks it, with texts of its own. */
export const RecordCreation = Type.Object({
  id: Type.String({ description: 'unique in the application' }),
  stream: TaskStreamBody,
  interval: Type.Optional(Type.Integer({ description: 'milliseconds of media per file', minimum: 1 })),
  schedule: Type.Optional(Type.String({ description: '`second minute hour`, each `*`, a number or `*/number`' })),
  segmentationRule: Type.Optional(Type.Enum([...SEGMENTATION_RULES])),
  filePath: Type.Optional(Type.String()),
  infoPath: Type.Optional(Type.String()),
  metadata: Type.Optional(Type.String()),
  standby: Type.Optional(Type.Boolean({ description: 'whether the slate of a publisher that is away is recorded' })),
});
