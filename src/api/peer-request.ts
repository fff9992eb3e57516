import Type, { type Static } from 'typebox';
import { definePeerCall } from '../peers/peer-call.ts';

/** A call of the management API that one node carries to another, which lets it in. */
export const API_REQUEST = definePeerCall(
  'api/request',
  Type.Object({
    method: Type.String(),
    /** With its query. */
    url: Type.String(),
    /** Of the log. */
    requestId: Type.String(),
    /** That the client called. */
    host: Type.String(),
    /** Who called, and from which address. */
    user: Type.Optional(Type.String()),
    remote: Type.Optional(Type.String()),
    body: Type.Optional(Type.String()),
    /** Where the configuration is that the answer has to be made with, as the node that was called knows it. */
    position: Type.Optional(Type.String()),
  }),
  Type.Object({
    status: Type.Integer({ minimum: 200, maximum: 599 }),
    type: Type.Optional(Type.String()),
    /** The answer may lack what others know by now. */
    stale: Type.Boolean(),
    body: Type.String(),
  }),
);
export type ApiRequest = Static<typeof API_REQUEST.request>;
export type ApiAnswer = Static<typeof API_REQUEST.answer>;
