//! Rights: tokens, policies, approvals, documents and who may do what with them.
