/* SPDX-License-Identifier: Apache-2.0
 *
 * The extension table: the one door through which a library built elsewhere adds ops and kernels.
 * Plain C: opaque handles, raw pointers, plain attributes, a code and a message for errors; no
 * object of Abseil or the C++ library crosses it, so that compilers and versions may differ.
 * oneflow_lite/extension/op.h is the comfortable C++ face.
 *
 * An extension exports
 *   uint32_t ofl_extension_version(void);            returns OFL_EXTENSION_VERSION
 *   int32_t ofl_extension_init(const ofl_api* api);  registers; 0, or a code after api->set_error
 * oneflow_lite refuses it with a message where the version differs. Additions at the end of ofl_api
 * keep the version; every other change raises it.
 */
#ifndef OFL_EXTENSION_C_API_H_
#define OFL_EXTENSION_C_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFL_EXTENSION_VERSION 1u

/* Codes: 0 is success, others say which Python exception is raised. */
enum {
  OFL_OK = 0,
  OFL_RUNTIME_ERROR = 1,
  OFL_INDEX_ERROR = 2,
  OFL_DTYPE_ERROR = 3,
  OFL_TYPE_ERROR = 4,
  OFL_SHAPE_ERROR = 5,
  OFL_VALUE_ERROR = 6,
  OFL_NOT_IMPLEMENTED = 7,
  OFL_OUT_OF_MEMORY = 8,
  OFL_OVERFLOW_ERROR = 9
};

enum ofl_dtype {
  OFL_BOOL = 0,
  OFL_UINT8 = 1,
  OFL_INT8 = 2,
  OFL_INT16 = 3,
  OFL_INT32 = 4,
  OFL_INT64 = 5,
  OFL_FLOAT16 = 6,
  OFL_BFLOAT16 = 7,
  OFL_FLOAT32 = 8,
  OFL_FLOAT64 = 9
};

enum { OFL_CPU = 0, OFL_CUDA = 1, OFL_META = 2, OFL_ANY_DEVICE = -1 };

enum {
  OFL_INPUT_REQUIRED = 0,
  OFL_INPUT_OPTIONAL = 1,
  OFL_INPUT_MUTATED = 2,
  OFL_INPUT_VARIADIC = 4
};

/* Types of attributes and values. */
enum ofl_value_type {
  OFL_NONE = 0,
  OFL_VALUE_BOOL = 1,
  OFL_VALUE_INT = 2,
  OFL_VALUE_FLOAT = 3,
  OFL_VALUE_INTS = 4,
  OFL_VALUE_STRING = 5,
  OFL_VALUE_DTYPE = 6,
  OFL_VALUE_TENSOR = 7,
  OFL_VALUE_TENSORS = 8
};

typedef struct ofl_tensor_* ofl_tensor; /* null: an undefined tensor */

/* An attribute, or an argument or result of a function. Pointers are borrowed. */
typedef struct {
  int32_t type;
  union {
    int32_t b;
    int64_t i; /* int, dtype */
    double f;
    const char* s;
    ofl_tensor tensor;
    struct {
      const int64_t* data;
      int64_t size;
    } ints;
    struct {
      const ofl_tensor* data;
      int64_t size;
    } tensors;
  } as;
} ofl_value;

typedef struct {
  const char* name;
  int32_t kind; /* OFL_INPUT_... */
} ofl_input;

typedef struct {
  const char* name;
  int32_t type;            /* OFL_VALUE_... up to OFL_VALUE_DTYPE */
  int32_t optional;        /* may be absent (OFL_NONE) */
  ofl_value default_value; /* type OFL_NONE: there is none */
} ofl_attr;

/* What callbacks get; valid until they return. */
typedef struct ofl_infer_* ofl_infer_context;
typedef struct ofl_kernel_* ofl_kernel_context;
typedef struct ofl_grad_* ofl_grad_context;
typedef struct ofl_sbp_* ofl_sbp_context;

typedef struct {
  const char* name; /* "namespace::name" */
  const char* doc;
  const char* file; /* where it is defined, for error messages */
  int32_t line;
  int32_t num_inputs, num_outputs, num_attrs;
  const ofl_input* inputs;
  const char* const* outputs;
  const ofl_attr* attrs;
  int32_t random;
  void* user; /* passed to the callbacks; must live as long as the process */
  int32_t (*infer)(ofl_infer_context c, void* user);
  /* null: no gradient. Bit i of the masks: input (output) i is kept for backward. */
  int32_t (*backward)(ofl_grad_context c, void* user);
  uint64_t save_inputs, save_outputs;
  int32_t (*sbp)(ofl_sbp_context c, void* user); /* null: broadcast only */
  int32_t (*cost)(ofl_infer_context c, void* user, double* bytes,
                  double* flops); /* null: default */
} ofl_op;

typedef struct {
  const char* op;
  int32_t device;          /* OFL_CPU, OFL_CUDA or OFL_ANY_DEVICE */
  uint32_t dtypes;         /* bit i: dtype of value i, of the first input */
  uint32_t strided_inputs; /* bit i: input i need not be contiguous */
  const char* file;
  int32_t line;
  void* user;
  int32_t (*launch)(ofl_kernel_context c, void* user); /* may run in several threads at once */
} ofl_kernel;

/* One side of an SBP signature: 'B', 'S' with an axis, or 'P' per tensor. */
typedef struct {
  char kind;
  int32_t axis;
} ofl_sbp;

typedef struct {
  uint32_t version; /* OFL_EXTENSION_VERSION */
  uint32_t size;    /* sizeof(ofl_api) of the library that fills it */

  /* Remembers a message for this thread and returns the code. */
  int32_t (*set_error)(int32_t code, const char* message);
  /* The message of the last function of this table that failed in this thread. */
  const char* (*last_error)(void);

  int32_t (*register_op)(const ofl_op* op);
  int32_t (*register_kernel)(const ofl_kernel* kernel);

  /* Tensors. Those that callbacks are given are borrowed; retain to keep. */
  void (*tensor_retain)(ofl_tensor t);
  void (*tensor_release)(ofl_tensor t);
  int32_t (*tensor_ndim)(ofl_tensor t);
  const int64_t* (*tensor_shape)(ofl_tensor t);
  const int64_t* (*tensor_strides)(ofl_tensor t); /* in elements */
  int64_t (*tensor_numel)(ofl_tensor t);
  int32_t (*tensor_dtype)(ofl_tensor t);
  int32_t (*tensor_device)(ofl_tensor t, int32_t* index);
  void* (*tensor_data)(ofl_tensor t);

  /* Calls a function of the library by its name in flow._C ("mul"), through dispatch and autograd;
   * absent trailing arguments take their defaults. *result is a tensor (OFL_VALUE_TENSOR) that the
   * caller owns, or several (OFL_VALUE_TENSORS) of which it owns each; their array is valid until
   * this thread's next call. */
  int32_t (*call)(const char* function, const ofl_value* args, int32_t num_args, ofl_value* result);

  /* infer: shape and dtype are of inputs that are there; every output must be set */
  int32_t (*infer_num_inputs)(ofl_infer_context c);
  int32_t (*infer_ndim)(ofl_infer_context c, int32_t input); /* -1: absent */
  const int64_t* (*infer_shape)(ofl_infer_context c, int32_t input);
  int32_t (*infer_dtype)(ofl_infer_context c, int32_t input);
  int32_t (*infer_attr)(ofl_infer_context c, int32_t attr, ofl_value* value);
  int32_t (*infer_set_output)(ofl_infer_context c, int32_t output, int32_t ndim,
                              const int64_t* shape, int32_t dtype);

  /* kernel; absent optional inputs are null */
  int32_t (*kernel_num_inputs)(ofl_kernel_context c);
  ofl_tensor (*kernel_input)(ofl_kernel_context c, int32_t i);
  ofl_tensor (*kernel_output)(ofl_kernel_context c, int32_t i);
  int32_t (*kernel_attr)(ofl_kernel_context c, int32_t attr, ofl_value* value);
  void* (*kernel_stream)(ofl_kernel_context c); /* cudaStream_t; null on the CPU */
  /* Scratch memory on the kernel's device until its work has run; one call per launch. */
  int32_t (*kernel_workspace)(ofl_kernel_context c, uint64_t nbytes, void** data);

  /* backward; saved inputs and outputs, incoming gradients (null: zero) are borrowed */
  int32_t (*grad_needs)(ofl_grad_context c, int32_t input);
  ofl_tensor (*grad_input)(ofl_grad_context c, int32_t i);
  ofl_tensor (*grad_output)(ofl_grad_context c, int32_t i);
  ofl_tensor (*grad_of_output)(ofl_grad_context c, int32_t i);
  int32_t (*grad_attr)(ofl_grad_context c, int32_t attr, ofl_value* value);
  int32_t (*grad_set)(ofl_grad_context c, int32_t input, ofl_tensor gradient);

  /* sbp: the logical shapes, and a signature to add (one entry per input, then per output) */
  int32_t (*sbp_ndim)(ofl_sbp_context c, int32_t input); /* -1: there is no such input */
  int32_t (*sbp_attr)(ofl_sbp_context c, int32_t attr, ofl_value* value);
  int32_t (*sbp_add)(ofl_sbp_context c, const ofl_sbp* entries, int32_t count);

  /* Added since: how many inputs a call of a variadic op had, for its backward. */
  int32_t (*grad_num_inputs)(ofl_grad_context c);
  /* An output with shape and dtype of an input that is there. */
  int32_t (*infer_set_output_like)(ofl_infer_context c, int32_t output, int32_t input);
  /* tensor_data of a tensor whose dtype is one of `dtypes` (1 << ofl_dtype), else null. */
  void* (*tensor_data_of)(ofl_tensor t, uint32_t dtypes);
} ofl_api;

#ifdef __cplusplus
}
#endif

#endif /* OFL_EXTENSION_C_API_H_ */
